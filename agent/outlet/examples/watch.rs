//! What an hour of history costs: time of a reading and of an answer, and memory, with 200
//! services that each have 100 kinds of handshakes and all activities.
//!
//!     cargo run --release -p tlsprof-outlet --example watch

use std::hint::black_box;
use std::sync::{PoisonError, RwLockWriteGuard};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use tlsprof_common::{Outcome, Resumption, Role, Source, Waits};
use tlsprof_evidence::Handshake;
use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_ledger::{Ledger, Sampling, SharedLedger};
use tlsprof_outlet::watch::{About, Bounds, Watch};
use tlsprof_report::model::{AgentCost, Host};

const SERVICES: usize = 200;
const GROUPS: [&str; 5] = ["x25519", "secp256r1", "secp384r1", "secp521r1", "x448"];
const CIPHERS: [&str; 5] = ["a", "b", "c", "d", "e"];
const RESUMPTIONS: [Resumption; 4] = [
    Resumption::None,
    Resumption::SessionId,
    Resumption::Ticket,
    Resumption::Psk,
];

fn handshake(number: usize) -> Handshake {
    let of = |names: &[&'static str], at: usize| names.get(at % names.len()).copied();
    let resumption = RESUMPTIONS.get(number / 25 % 4).copied();
    Handshake {
        process: 1,
        process_start: 1,
        comm: "server".into(),
        role: Role::Server,
        source: Source::Library,
        connection: None,
        named: false,
        outcome: Outcome::Completed,
        resumption: resumption.unwrap_or(Resumption::Unknown),
        version: "TLS1.3",
        cipher: of(&CIPHERS, number / 5).unwrap_or("other"),
        group: of(&GROUPS, number).unwrap_or("other"),
        signature: "rsa_2048",
        began: Duration::ZERO,
        cpu: Duration::from_micros(900),
        duration: Duration::from_millis(4),
        steps: None,
        flights: None,
        finish_and_answer: Duration::ZERO,
        offloaded: false,
        unseen: Duration::ZERO,
        waits: Waits::default(),
        calls: 2,
        probe_hits: 20,
        client_authenticates: false,
        error_reason: None,
        hello: None,
        estimate: None,
    }
}

/// One second of all services.
fn second(ledger: &mut Ledger) {
    for service in 0..SERVICES {
        let name = format!("service-{service}");
        for kind in 0..100 {
            ledger.record(&name, &handshake(kind));
        }
        for activity in Activity::ALL {
            for mode in Mode::ALL {
                ledger.add_samples(&name, activity, mode, 1);
            }
        }
        ledger.add_cpu(&name, Duration::from_millis(90), Duration::from_millis(90));
    }
}

fn about() -> About {
    About {
        run: "run".into(),
        tlsprof_version: String::new(),
        host: Host {
            hostname: "host".into(),
            kernel: String::new(),
            cpus: 2,
        },
        started_at: String::new(),
    }
}

/// CPU time of this thread: of the machine's other work nothing is in it.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1);
    pages.and_then(|pages| pages.parse().ok()).unwrap_or(0) * 4096_u64
}

fn to_book(ledger: &SharedLedger) -> RwLockWriteGuard<'_, Ledger> {
    ledger.write().unwrap_or_else(PoisonError::into_inner)
}

fn main() {
    let ledger = SharedLedger::default();
    to_book(&ledger).set_sampling(Sampling::Every(Duration::from_millis(10)));
    second(&mut to_book(&ledger));
    let mut watch = Watch::new(SharedLedger::clone(&ledger), about(), Bounds::default());
    let before = resident_bytes();
    let (mut reading, mut longest) = (Duration::ZERO, Duration::ZERO);
    for at in 1..=3600_u32 {
        // Each fifth second, else it would take long; sums are the same to the history.
        if at % 5 == 0 {
            second(&mut to_book(&ledger));
        }
        let begun = cpu_time();
        watch.read(
            Duration::from_secs(at.into()),
            AgentCost::default(),
            Vec::new(),
        );
        reading += cpu_time() - begun;
        longest = longest.max(cpu_time() - begun);
    }
    println!(
        "a reading: {:?} on average, {longest:?} at most",
        reading / 3600
    );
    println!("an hour: {} KiB", (resident_bytes() - before) / 1024);
    let begun = cpu_time();
    let state = black_box(watch.state(watch.history().last_point()));
    println!("a state: {:?} under the lock", (cpu_time() - begun));
    let begun = cpu_time();
    let json = serde_json::to_vec(&state).unwrap_or_default();
    println!(
        "written down: {:?}, {} KB",
        (cpu_time() - begun),
        json.len() / 1000
    );
    let begun = cpu_time();
    let series = black_box(watch.series("service-1", 0));
    println!(
        "an hour of one service: {:?} under the lock",
        (cpu_time() - begun)
    );
    let json = serde_json::to_vec(&series).unwrap_or_default();
    println!("written down: {} KB", json.len() / 1000);
}
