//! A profile as it may come from a real host, for tests of the outlets.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;
use std::time::Duration;

use tlsprof_advise::{Calibrations, Finding, Setting, Thresholds, advise};
use tlsprof_common::contract::TLSPROF_LIBRARY_OPENSSL;
use tlsprof_common::{
    Carries, Closer, Connection, Outcome, Reason, Resumption, Role, Source, Whole,
};
use tlsprof_evidence::accept_queue::{AcceptQueues, Queue};
use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_evidence::hello::fixture;
use tlsprof_evidence::primitive::{Evidence as Proof, Primitive};
use tlsprof_evidence::sample::opening;
pub use tlsprof_evidence::sample::{connection, handshake};
use tlsprof_evidence::{Comparison, Handshake, hello};
use tlsprof_ledger::{Ledger, Sampling};

use super::model::{AgentCost, Command, Host, Loss, Report, TlsLibrary};
use super::{Facts, ServiceFacts, build};

/// The connections of that nginx: most closed by it after five turns, the rest
/// by clients.
fn book_connections(ledger: &mut Ledger) {
    ledger.advance(Duration::from_secs(101));
    for n in 0..9000_u32 {
        let mut one = connection();
        if n % 50 == 0 {
            one.closed_by = Closer::Remote;
            one.reset = n % 100 == 0;
            one.time_wait = false;
            one.whole = one.whole.map(|whole| Whole {
                turns: Some(n % 5),
                ..whole
            });
        }
        ledger.record_opening("nginx.service", &opening(Role::Server));
        ledger.record_connection("nginx.service", &one);
    }
    record_queues(ledger, "nginx.service", 512, 34);
    let from_before = Connection {
        whole: None,
        ..connection()
    };
    for _ in 0..3 {
        ledger.record_connection("nginx.service", &from_before);
    }
}

/// A reading of the accept queues of one service, for 511 connections.
pub fn record_queues(ledger: &mut Ledger, service: &str, length: u32, overflows: u64) {
    let mut queues = AcceptQueues::default();
    let limit = 511;
    queues.add(Queue { length: 3, limit }, 0);
    queues.add(Queue { length, limit }, overflows);
    ledger.record_accept_queues(&BTreeMap::from([(service.to_owned(), queues)]));
}

fn hello(fixture: &str) -> Option<Box<hello::Facts>> {
    static ALL: LazyLock<HashMap<&str, hello::Facts>> = LazyLock::new(|| {
        let facts = fixture::all().iter().filter_map(|one| {
            let facts = fixture::fed(one.whole()).into_facts()?;
            Some((one.name.as_str(), *facts))
        });
        facts.collect()
    });
    ALL.get(fixture).cloned().map(Box::new)
}

/// What socket calls saw of a handshake: 2% more.
fn compared(handshake: &Handshake) -> Comparison {
    Comparison {
        process: handshake.process,
        comm: handshake.comm.clone(),
        role: handshake.role,
        began: handshake.began,
        connection: handshake.connection,
        library: handshake.cpu,
        socket: handshake.cpu * 51 / 50,
    }
}

/// A server with a TLS library of its own: socket calls are the only source, and
/// every tenth connection goes to another thread.
fn book_closed_server(ledger: &mut Ledger) {
    for n in 0..1200_u32 {
        let resumed = n % 4 == 0;
        let flights = [if resumed { 90 } else { 1410 }, 210].map(Duration::from_micros);
        let mut one = Handshake {
            comm: "http".into(),
            source: Source::Socket,
            resumption: Resumption::Unknown,
            group: "unknown",
            signature: "unknown",
            version: "unknown",
            cipher: "unknown",
            cpu: flights.iter().sum(),
            steps: None,
            flights: Some(flights),
            offloaded: n % 10 == 9,
            hello: hello(if resumed {
                "openssl30-tls12-session-id"
            } else {
                "openssl30-tls12-session-id-refused"
            }),
            ..handshake()
        };
        if let Some(facts) = one.hello.take() {
            facts.apply_to(&mut one);
            one.hello = Some(facts);
        }
        ledger.record("domino.service", &one);
        let closed = Connection {
            carries: Carries::Tls,
            cipher: one.cipher,
            application_received: 700,
            application_sent: 9_000,
            ..connection()
        };
        ledger.record_opening("domino.service", &opening(Role::Server));
        ledger.record_connection("domino.service", &closed);
    }
}

/// Samples of that nginx and of the closed server; the client is too idle for any.
fn book_samples(ledger: &mut Ledger) {
    ledger.set_sampling(Sampling::Every(Duration::from_micros(10_101)));
    for (activity, user, system, softirq) in [
        (Activity::Handshake, 1560, 66, 0),
        (Activity::Encryption, 61, 4, 0),
        (Activity::TcpOpen, 0, 31, 18),
        (Activity::TcpClose, 0, 77, 41),
        (Activity::SocketIo, 0, 288, 0),
        (Activity::Application, 160, 52, 0),
    ] {
        for (mode, count) in [
            (Mode::User, user),
            (Mode::System, system),
            (Mode::Softirq, softirq),
        ] {
            ledger.add_samples("nginx.service", activity, mode, count);
        }
    }
    ledger.note_unclassified("nginx.service", 11);
    ledger.add_samples("domino.service", Activity::Handshake, Mode::User, 60);
    ledger.add_samples("domino.service", Activity::Encryption, Mode::User, 4);
    ledger.note_cipher_alone("domino.service", 4);
    book_primitives(ledger);
}

/// What these samples of handshakes and encryption hit: code of a stripped OpenSSL in that nginx, of a
/// stripped program in the closed server.
fn book_primitives(ledger: &mut Ledger) {
    let (handshake, encryption) = (Activity::Handshake, Activity::Encryption);
    let (name, instructions, none) = (Proof::Name, Proof::Instructions, Proof::None);
    let nginx = [
        ((handshake, Primitive::PublicKey, instructions), 934),
        ((handshake, Primitive::NotIdentified, none), 338),
        ((handshake, Primitive::Kernel, name), 66),
        ((handshake, Primitive::Other, name), 117),
        ((handshake, Primitive::Sha, instructions), 68),
        ((handshake, Primitive::Memory, name), 59),
        ((handshake, Primitive::BigNumber, name), 44),
        ((encryption, Primitive::Aes, instructions), 40),
        ((encryption, Primitive::Other, name), 13),
        ((encryption, Primitive::NotIdentified, none), 8),
        ((encryption, Primitive::Kernel, name), 4),
    ];
    ledger.note_primitives("nginx.service", &BTreeMap::from(nginx));
    let closed = [
        ((handshake, Primitive::PublicKey, instructions), 47),
        ((handshake, Primitive::NotIdentified, none), 13),
        ((encryption, Primitive::Aes, instructions), 4),
    ];
    ledger.note_primitives("domino.service", &BTreeMap::from(closed));
}

/// The ledger of half a minute of an nginx with two certificates.
pub fn ledger() -> Ledger {
    let mut ledger = Ledger::default();
    for n in 0..9000_u32 {
        let mut one = handshake();
        // A little spread, so that the quantiles differ.
        one.cpu += Duration::from_micros(u64::from(n % 97) * 3);
        one.duration += Duration::from_micros(u64::from(n % 89) * 40);
        if n % 3 == 1 {
            one.group = "secp384r1";
            one.cpu += Duration::from_micros(1900);
            one.steps = one.steps.map(|mut steps| {
                steps.cpu[0] += Duration::from_micros(1900);
                steps
            });
        }
        if n % 3 == 2 {
            one.resumption = Resumption::Psk;
            one.signature = "none";
            one.cpu -= Duration::from_micros(905);
            one.steps = one.steps.map(|mut steps| {
                steps.cpu[1] = Duration::ZERO;
                steps
            });
        }
        if n % 10 != 0 {
            one.steps = None;
        }
        one.hello = hello(match n % 3 {
            0 => "openssl35-tls13-full",
            1 if n % 50 == 1 => "openssl30-tls13-psk-refused",
            1 => "openssl30-tls13-hrr",
            _ => "openssl30-tls13-psk-resumed",
        });
        ledger.record("nginx.service", &one);
        ledger.record_comparison("nginx.service", &compared(&one));
    }
    for n in 0..37_u32 {
        let failed = Handshake {
            outcome: if n % 4 == 0 {
                Outcome::Abandoned
            } else {
                Outcome::Failed
            },
            group: "none",
            signature: "none",
            version: "unknown",
            cipher: "unknown",
            cpu: Duration::from_micros(60),
            steps: None,
            hello: hello(if n % 3 == 0 {
                "openssl30-no-common-cipher"
            } else {
                "openssl30-tls12-client-rejects"
            }),
            error_reason: (n % 4 != 0).then_some(Reason {
                library: TLSPROF_LIBRARY_OPENSSL,
                number: if n % 3 == 0 { 193 } else { 1048 },
            }),
            ..handshake()
        };
        ledger.record("nginx.service", &failed);
    }
    for _ in 0..12 {
        let client = Handshake {
            role: Role::Client,
            comm: "python3".into(),
            signature: "none",
            ..handshake()
        };
        ledger.record("orders-api.service", &client);
    }
    book_connections(&mut ledger);
    book_closed_server(&mut ledger);
    book_samples(&mut ledger);
    let seconds = Duration::from_secs_f64;
    ledger.add_cpu("nginx.service", seconds(19.81), seconds(3.42));
    ledger.add_cpu("orders-api.service", seconds(6.1), seconds(0.4));
    ledger.add_cpu("domino.service", seconds(3.2), seconds(0.5));
    ledger
}

/// What is known of the host and of its services.
pub fn facts() -> Facts {
    let openssl = |state: &str| TlsLibrary {
        kind: "OpenSSL".into(),
        version: "3.0.17".into(),
        path: "/usr/lib/x86_64-linux-gnu/libssl.so.3".into(),
        build_id: "0f1e2d3c".into(),
        state: state.into(),
    };
    let service = |executable: &str, processes, ports: &[u16], library: TlsLibrary| ServiceFacts {
        executable: executable.into(),
        processes,
        ports: ports.to_vec(),
        tls_libraries: vec![library],
        named: false,
    };
    Facts {
        host: Host {
            hostname: "web1".into(),
            kernel: "6.12.43+deb13-amd64".into(),
            cpus: 4,
        },
        started_at: "2026-05-04T09:30:00Z".into(),
        duration: Duration::from_secs(30),
        services: BTreeMap::from([
            (
                "nginx.service".into(),
                service("/usr/sbin/nginx", 5, &[443, 8443], openssl("profiled")),
            ),
            (
                "orders-api.service".into(),
                service("/usr/bin/python3.11", 1, &[8000], openssl("profiled")),
            ),
            (
                "domino.service".into(),
                ServiceFacts {
                    executable: "/opt/hcl/domino/notes/latest/linux/http".into(),
                    processes: 1,
                    ports: vec![443],
                    tls_libraries: Vec::new(),
                    named: false,
                },
            ),
            (
                "sshd.service".into(),
                service("/usr/sbin/sshd", 1, &[22], openssl("uses libcrypto only")),
            ),
        ]),
        findings: Vec::new(),
        losses: vec![
            Loss {
                reason: tlsprof_common::Loss::EventRingFull,
                count: 0,
            },
            Loss {
                reason: tlsprof_common::Loss::BeganBeforeAttach,
                count: 3,
            },
        ],
        agent: AgentCost {
            cpu_seconds: 0.21,
            memory_bytes: 23_400_000,
            bpf_run_seconds: 0.061,
            bpf_runs: 151_200,
            probe_hits: 148_900,
            target_seconds: 0.262,
            profiled_seconds: 0.131,
        },
        command: None,
        requests: None,
        notes: Vec::new(),
    }
}

/// The report of that half minute, with what the rules find in it.
pub fn report() -> Report {
    let (facts, ledger) = (facts(), ledger());
    let findings = findings_of(&facts, &ledger);
    let facts = Facts {
        findings,
        ..facts.clone()
    };
    build(facts, &ledger)
}

/// What is wrong with the services of that profile.
pub fn findings() -> Vec<Finding> {
    findings_of(&facts(), &ledger())
}

fn findings_of(facts: &Facts, ledger: &Ledger) -> Vec<Finding> {
    let about = |name: &str| facts.services.get(name).map(ServiceFacts::about);
    let none = Calibrations::new();
    advise(
        ledger,
        &none,
        about,
        Setting {
            elapsed: facts.duration,
            aes_in_hardware: true,
            client_closes: None,
        },
        Thresholds::default(),
    )
}

/// The same with lost events and samples, connections that stay open, and a command.
pub fn lossy_report() -> Report {
    let losses = vec![
        Loss {
            reason: tlsprof_common::Loss::EventRingFull,
            count: 1234,
        },
        Loss {
            reason: tlsprof_common::Loss::HandshakeTableFull,
            count: 2,
        },
    ];
    let command = Command {
        arguments: ["wrk", "-d", "30s", "https://localhost/"]
            .map(String::from)
            .into(),
        exit_status: 1,
    };
    let mut ledger = ledger();
    lose_samples(&mut ledger);
    let mut facts = facts();
    facts.losses = losses;
    facts.command = Some(command);
    build(facts, &ledger)
}

/// Half a minute more without a sample, with connections that were not seen whole.
fn lose_samples(ledger: &mut Ledger) {
    ledger.add_cpu(
        "nginx.service",
        Duration::from_secs(9),
        Duration::from_secs(2),
    );
    ledger.settle_cpu();
    for _ in 0..1200 {
        ledger.record_opening("nginx.service", &opening(Role::Server));
    }
}

/// A report in which nothing happened.
pub fn silent_report() -> Report {
    build(facts(), &Ledger::default())
}
