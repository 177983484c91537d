//! What works on this host: each capability is tried, not derived from a version.

use std::fs;
use std::path::Path;

use crate::causes::one_line;
use crate::discover::host::Host;
use crate::kernel::connections::{Connections, Follow};
use crate::kernel::cost::calibrate;
use crate::kernel::load::{Loaded, Options, UprobeMode, load};
use crate::kernel::mappings::Watch;
use crate::outlet::doctor::{Capability, Diagnosis, HostFact, State};

/// Loads everything once, attaches to nothing but this process itself, and lets
/// go again.
pub fn diagnose(handshakes_in_progress: u32, connections: Follow) -> Diagnosis {
    let loaded = load(Options {
        mode: None,
        handshakes_in_progress,
        connections,
    });
    let mappings = Watch::start();
    let mut capabilities = Vec::new();
    let (handshakes, multi, trap, [life_cycle, calls]) = match loaded {
        Ok(mut loaded) => (
            State::Available,
            multi(&loaded),
            trap(&mut loaded),
            connection_states(&loaded.connections),
        ),
        Err(error) => {
            let unavailable = State::Unavailable(one_line(&error));
            (
                unavailable.clone(),
                unavailable.clone(),
                unavailable.clone(),
                [unavailable.clone(), unavailable],
            )
        }
    };
    let mut add = |name, state, gives| capabilities.push(Capability { name, state, gives });
    add(
        "openssl_handshakes",
        handshakes,
        "handshakes of OpenSSL 1.1.1 and 3.x: counts, CPU time, steps",
    );
    add(
        "uprobe_multi",
        multi,
        "attaching and releasing all probes of a library at once",
    );
    add("uprobes", trap, "probes in running processes");
    add(
        "connections",
        life_cycle,
        "TCP connections of every service: opened, closed by whom, resets, TIME_WAIT",
    );
    add(
        "connection_turns",
        calls,
        "turns per connection; owners of connections that a peer resets",
    );
    add(
        "mapping_events",
        match mappings {
            Ok(_) => State::Available,
            Err(error) => State::Unavailable(one_line(&error)),
        },
        "libraries that are loaded after the start are found at once",
    );
    Diagnosis {
        host: host(),
        capabilities,
    }
}

fn multi(loaded: &Loaded) -> State {
    match loaded.mode {
        UprobeMode::Multi => State::Available,
        UprobeMode::Single => State::Degraded(
            "the kernel has no uprobe_multi links (Linux 6.6): one perf event a probe, slower to attach and release".to_owned(),
        ),
    }
}

fn connection_states(connections: &Connections) -> [State; 2] {
    let state = |works: &Result<(), String>| match works {
        Ok(()) => State::Available,
        Err(reason) => State::Unavailable(reason.clone()),
    };
    [state(&connections.life_cycle), state(&connections.calls)]
}

fn trap(loaded: &mut Loaded) -> State {
    match calibrate(loaded) {
        Some(_) => State::Available,
        None => State::Unavailable("a probe in tlsprof itself could not be attached".to_owned()),
    }
}

fn host() -> Vec<HostFact> {
    let mut facts = Vec::new();
    let mut add = |name: &str, value: String| {
        facts.push(HostFact {
            name: name.to_owned(),
            value,
        });
    };
    if let Ok(host) = Host::read() {
        add("kernel", host.kernel);
        add("CPUs", host.cpus.to_string());
    }
    add("architecture", std::env::consts::ARCH.to_owned());
    let btf = Path::new("/sys/kernel/btf/vmlinux").exists();
    add(
        "type information (BTF)",
        if btf {
            "yes"
        } else {
            "no: the BPF programs cannot be loaded"
        }
        .to_owned(),
    );
    add(
        "user",
        if rustix::process::geteuid().is_root() {
            "root"
        } else {
            "not root"
        }
        .to_owned(),
    );
    add("lockdown", lockdown());
    facts
}

/// The active mode of the kernel's lockdown (kernel_lockdown(7)), in brackets in
/// the file.
fn lockdown() -> String {
    let text = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let active = text.split(['[', ']']).nth(1);
    active.unwrap_or("not in this kernel").to_owned()
}
