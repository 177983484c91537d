//! What that host's ledger holds.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;
use std::time::Duration;

use tlsprof_common::contract::TLSPROF_LIBRARY_OPENSSL;
use tlsprof_common::{
    Carries, Closer, Connection, Outcome, Reason, Resumption, Role, Source, Whole,
};
use tlsprof_evidence::accept_queue::{AcceptQueues, Queue};
use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_evidence::hello::fixture;
use tlsprof_evidence::primitive::{Evidence as Proof, Primitive};
use tlsprof_evidence::sample::{connection, handshake, opening};
use tlsprof_evidence::{Comparison, Handshake, hello};
use tlsprof_ledger::{Ledger, Primitives, Sampling};

/// The ledger of half a minute of an nginx with two certificates.
pub fn ledger() -> Ledger {
    let mut ledger = Ledger::default();
    book_handshakes(&mut ledger);
    book_failures(&mut ledger);
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

fn book_handshakes(ledger: &mut Ledger) {
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
}

/// Handshakes that failed or were abandoned.
fn book_failures(ledger: &mut Ledger) {
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
}

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
    ledger.note_primitives("nginx.service", &without_callers(&nginx));
    let closed = [
        ((handshake, Primitive::PublicKey, instructions), 47),
        ((handshake, Primitive::NotIdentified, none), 13),
        ((encryption, Primitive::Aes, instructions), 4),
    ];
    ledger.note_primitives("domino.service", &without_callers(&closed));
}

fn without_callers(samples: &[((Activity, Primitive, Proof), u64)]) -> Primitives {
    let samples = samples.iter();
    let samples =
        samples.map(|&((activity, primitive, by), count)| ((activity, primitive, by, None), count));
    samples.collect()
}

/// Half a minute more without a sample, with connections that were not seen whole.
pub(super) fn lose_samples(ledger: &mut Ledger) {
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
