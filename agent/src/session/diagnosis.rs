//! What works on this host: each capability is tried, not derived from a version.

use std::path::Path;
use std::sync::Arc;

use super::queues;
use tlsprof_common::causes::one_line;
use tlsprof_common::privilege;
use tlsprof_discover::ProcRoot;
use tlsprof_discover::host::{Host, other_pid_namespace};
use tlsprof_discover::reach::reach;
use tlsprof_evidence::activity::kernel_symbols::KernelFunctions;
use tlsprof_kernel::cost::calibrate;
use tlsprof_kernel::error::Unavailable;
use tlsprof_kernel::listeners::Listeners;
use tlsprof_kernel::load::{Options, load, try_tier};
use tlsprof_kernel::loaded::Loaded;
use tlsprof_kernel::lockdown::Lockdown;
use tlsprof_kernel::mappings::Watch;
use tlsprof_kernel::object::UprobeMode;
use tlsprof_kernel::socket_calls::Tier;
use tlsprof_kernel::types::{self, Source};
use tlsprof_outlet::doctor::{Capability, Diagnosis, Group, HostFact, State};

/// Whether something works, and the reason in a few words where that of the state quotes the
/// system.
#[derive(Clone)]
struct Found {
    state: State,
    summary: Option<String>,
}

impl From<State> for Found {
    fn from(state: State) -> Self {
        let summary = None;
        Self { state, summary }
    }
}

/// Loads everything once, attaches to nothing but this process itself, and lets
/// go again.
pub(crate) fn diagnose(options: &Options) -> Diagnosis {
    let btf = options.btf.as_deref();
    let loaded = load(options, |_| ()).map_err(|error| Found {
        state: State::Unavailable(one_line(&error)),
        summary: error.in_short().map(str::to_owned),
    });
    let capabilities = of_programs(loaded, btf).into_iter().chain(of_system());
    let obstacle = missing_privileges().or_else(|| other_pid_namespace().map(str::to_owned));
    Diagnosis::new(host(btf), capabilities.collect(), obstacle)
}

/// What to do about privileges without which nothing works.
fn missing_privileges() -> Option<String> {
    let explanation = privilege::explanation()?;
    Some(if rustix::process::geteuid().is_root() {
        explanation
    } else {
        "run as root (sudo tlsprof doctor)".to_owned()
    })
}

fn capability(
    group: Group,
    name: &'static str,
    found: impl Into<Found>,
    gives: &'static str,
) -> Capability {
    let Found { state, summary } = found.into();
    Capability {
        name,
        state,
        summary,
        gives,
        group,
    }
}

/// Tells whether a part of what was loaded works.
type Check = fn(&mut Loaded) -> Found;

/// What needs the BPF programs, apart from the ways to see socket calls: group, name, whether it
/// works, and what it gives.
const PROGRAMS: &[(Group, &str, Check, &str)] = &[
    (
        Group::Needed,
        "connections",
        |it| found(it.connections.life_cycle().err()),
        "TCP connections of every service: opened, closed by whom, resets, TIME_WAIT",
    ),
    (
        Group::Needed,
        "connection_turns",
        |it| found(it.connections.calls().err()),
        "TLS handshakes of any library, from TLS records; turns per connection; owners of \
         connections that the peer resets",
    ),
    (
        Group::Recommended,
        "openssl_handshakes",
        |it| found(it.library.as_ref().err().map(Arc::as_ref)),
        "handshakes in OpenSSL 1.1.1 and 3.x and in GnuTLS 3: counts and CPU time; with OpenSSL also steps",
    ),
    (
        Group::Recommended,
        "uprobes",
        trap,
        "probes in running processes",
    ),
    (
        Group::Recommended,
        "uprobe_multi",
        multi,
        "attaching and releasing all probes of a library at once",
    ),
    (
        Group::Recommended,
        "cpu_samples",
        samples,
        "CPU time of services by activity: TLS, TCP, the application",
    ),
    (
        Group::Recommended,
        "accept_wait",
        |it| found(it.connections.accepts().err()),
        "how long connections wait to be accepted",
    ),
    (
        Group::Recommended,
        "listening_sockets",
        listeners,
        "who listens on which port, of all processes at once",
    ),
];

/// What needs the BPF programs; `loaded` is why there are none.
fn of_programs(mut loaded: Result<Loaded, Found>, btf: Option<&Path>) -> Vec<Capability> {
    let each = PROGRAMS.iter().map(|&(group, name, works, gives)| {
        let works = loaded.as_mut().map_or_else(|reason| reason.clone(), works);
        capability(group, name, works, gives)
    });
    let mut all: Vec<_> = each.collect();
    let used = loaded.ok().and_then(|it| it.connections.calls().ok());
    let tiers = Tier::ALL.into_iter().map(|tier| {
        let in_use = used == Some(tier);
        let (group, works) = if in_use {
            (Group::Needed, State::Available.into())
        } else {
            (
                Group::Alternative,
                found(try_tier(tier, btf).as_ref().err()),
            )
        };
        capability(group, tier_name(tier), works, sees(tier, in_use))
    });
    all.extend(tiers);
    all
}

/// What needs only the system's permission.
fn of_system() -> [Capability; 3] {
    [
        capability(
            Group::Recommended,
            "accept_queues",
            queues::works(),
            "how full accept queues are, and what the kernel drops because they are full",
        ),
        capability(
            Group::Needed,
            "processes",
            processes(),
            "inspecting processes: their services, TLS libraries, ports",
        ),
        capability(
            Group::Needed,
            "mapping_events",
            mappings(),
            "libraries loaded after the start are probed at once",
        ),
    ]
}

fn mappings() -> Found {
    let Err(error) = Watch::start() else {
        return State::Available.into();
    };
    let denied = error.kind() == std::io::ErrorKind::PermissionDenied;
    let summary = if denied {
        "no permission to watch mappings (perf_event_open)"
    } else {
        "refused by this kernel (perf_event_open)"
    };
    Found {
        state: State::Unavailable(one_line(&error)),
        summary: Some(summary.to_owned()),
    }
}

fn processes() -> State {
    let found = match reach(&ProcRoot::default()) {
        Ok(found) if found.closed == 0 => return State::Available,
        Ok(found) => found,
        Err(error) => return State::Unavailable(one_line(&error)),
    };
    State::Degraded(format!(
        "{} of {} processes cannot be inspected: {}",
        found.closed,
        found.all,
        privilege::refusal()
    ))
}

fn multi(loaded: &mut Loaded) -> Found {
    let state = match loaded.mode {
        UprobeMode::Multi => State::Available,
        UprobeMode::Single => State::Degraded(
            "the kernel has no uprobe_multi links (Linux 6.6): each probe needs a perf event, which is slower to attach and release".to_owned(),
        ),
    };
    state.into()
}

fn found(missing: Option<&Unavailable>) -> Found {
    missing.map_or(State::Available.into(), |reason| Found {
        state: State::Unavailable(reason.to_string()),
        summary: reason.in_short().map(str::to_owned),
    })
}

/// Samples need the kernel's symbols to say what it was at work on.
fn samples(loaded: &mut Loaded) -> Found {
    loaded.start_samples();
    if let Err(reason) = &loaded.samples {
        return found(Some(reason));
    }
    let missing = match KernelFunctions::read() {
        Err(error) => format!(
            "system time is not divided by activity: {}",
            one_line(&error)
        ),
        Ok(functions) if functions.missing().is_empty() => return State::Available.into(),
        Ok(functions) => format!(
            "system time is divided by kernel functions, and this kernel lacks some: {}",
            functions.missing().join(", ")
        ),
    };
    State::Degraded(missing).into()
}

const fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Tracepoint => "socket_calls_tracepoint",
        Tier::Fentry => "socket_calls_fentry",
        Tier::RawSyscalls => "socket_calls_raw_syscalls",
    }
}

/// What a way to see socket calls is, and, where it is in use, what it misses.
const fn sees(tier: Tier, in_use: bool) -> &'static str {
    match (tier, in_use) {
        (Tier::Tracepoint, true) => {
            "in use: socket calls, by kernel tracepoints. Without the bytes, and so without TLS: \
             io_uring, sendfile, recvmmsg and 32-bit processes. Not seen: splice"
        }
        (Tier::Tracepoint, false) => "socket calls, by kernel tracepoints",
        (Tier::Fentry, true) => {
            "in use: socket calls, when the kernel's TCP functions return. Without the bytes, \
             and so without TLS: io_uring, sendfile, recvmmsg and 32-bit processes. Not seen: \
             splice, and sockets that the kernel encrypts"
        }
        (Tier::Fentry, false) => "socket calls, when the kernel's TCP functions return",
        (Tier::RawSyscalls, true) => {
            "in use: socket calls, when system calls return, which adds a small cost to every \
             system call of the host. Without the bytes, and so without TLS: sendfile and \
             recvmmsg. Not seen: io_uring, splice and 32-bit processes"
        }
        (Tier::RawSyscalls, false) => "socket calls, when any system call of the host returns",
    }
}

/// Without the kernel's iterator they are read from /proc.
fn listeners(loaded: &mut Loaded) -> Found {
    let state = match loaded.listeners().map(Listeners::read) {
        Some(Ok(_)) => State::Available,
        _ => State::Degraded(
            "read from /proc, one open file at a time, which takes seconds with a thousand processes"
                .to_owned(),
        ),
    };
    state.into()
}

fn trap(loaded: &mut Loaded) -> Found {
    let missing =
        || State::Unavailable("a probe in tlsprof itself could not be attached".to_owned());
    calibrate(loaded)
        .map_or_else(missing, |_| State::Available)
        .into()
}

fn host(btf: Option<&Path>) -> Vec<HostFact> {
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
    add("type information (BTF)", types(btf));
    add(
        "user",
        if rustix::process::geteuid().is_root() {
            "root"
        } else {
            "not root"
        }
        .to_owned(),
    );
    add("privileges", privilege::describe());
    let pids = other_pid_namespace().map_or("the host's", |_| "not the host's");
    add("PID namespace", pids.to_owned());
    let lockdown = Lockdown::read();
    let unknown = || "not in this kernel, or securityfs is not mounted".to_owned();
    add(
        "lockdown",
        lockdown.map_or_else(unknown, |mode| mode.label().to_owned()),
    );
    facts
}

fn types(btf: Option<&Path>) -> String {
    match types::source(btf) {
        Ok(Source::Kernel) => "yes".to_owned(),
        Ok(Source::File(path)) => format!("not shown by the kernel; from {}", path.display()),
        Err(_) => "no: the BPF programs cannot be loaded".to_owned(),
    }
}
