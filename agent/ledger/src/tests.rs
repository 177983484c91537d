//! What must hold whatever comes: parts add up, counters never decrease, and
//! memory is bounded.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod services;

use std::time::Duration;

use proptest::prelude::*;

use super::handshakes::REASONS;
use super::*;
use tlsprof_common::{
    Carries, Closer, Connection, Outcome, Reason, Resumption, Role, Source, Step, Steps,
    WaitReason, Waits,
};
use tlsprof_evidence::hello::{Attempt, Facts, Group, Upgrade, fixture};
use tlsprof_evidence::{Comparison, Handshake, sample};

const GROUPS: [&str; 3] = ["x25519", "secp384r1", "none"];
const SIGNATURES: [&str; 4] = ["rsa_2048", "ecdsa_p256", "none", "unknown"];

pub(super) fn handshake() -> Handshake {
    Handshake {
        cpu: Duration::from_micros(1000),
        duration: Duration::from_millis(3),
        steps: None,
        waits: Waits::default(),
        ..sample::handshake()
    }
}

pub(super) fn measured(micros: [u64; Step::COUNT], key_derivation_observed: bool) -> Handshake {
    let cpu = micros.map(Duration::from_micros);
    Handshake {
        cpu: cpu.iter().sum(),
        steps: Some(Steps {
            cpu,
            key_derivation_observed,
        }),
        ..handshake()
    }
}

prop_compose! {
    pub(crate) fn any_handshake()(
        server in any::<bool>(),
        outcome in prop::sample::select(vec![Outcome::Completed, Outcome::Failed, Outcome::Abandoned]),
        resumption in prop::sample::select(vec![Resumption::None, Resumption::Psk]),
        group in prop::sample::select(GROUPS.to_vec()),
        signature in prop::sample::select(SIGNATURES.to_vec()),
        nanos in prop::array::uniform6(0u64..5_000_000),
        unmeasured in any::<bool>(),
        key_derivation_observed in any::<bool>(),
        wait in 0u64..1_000_000,
        (socket, offloaded) in any::<(bool, bool)>(),
    ) -> Handshake {
        let source = if socket { Source::Socket } else { Source::Library };
        let unmeasured = unmeasured || socket;
        let mut cpu = nanos.map(Duration::from_nanos);
        let total = cpu.iter().sum();
        if !key_derivation_observed {
            cpu[5] += cpu[4];
            cpu[4] = Duration::ZERO;
        }
        Handshake {
            role: if server { Role::Server } else { Role::Client },
            outcome, resumption, group, signature, source,
            offloaded: offloaded && socket,
            cpu: total,
            steps: (!unmeasured).then_some(Steps { cpu, key_derivation_observed }),
            waits: [Duration::from_nanos(wait); WaitReason::COUNT],
            ..handshake()
        }
    }
}

fn counters(ledger: &Ledger) -> Vec<Duration> {
    let mut all = Vec::new();
    for service in ["a", "b", "c", "d", OTHER] {
        for role in [Role::Server, Role::Client] {
            let account = ledger.service(service).and_then(|s| s.roles.get(&role));
            for step in Step::ALL {
                all.push(account.map_or(Duration::ZERO, |a| a.steps.cpu(step)));
            }
            all.push(account.map_or(Duration::ZERO, RoleAccount::unmeasured_cpu));
        }
    }
    all
}

proptest! {
    #[test]
    fn parts_add_up_and_counters_never_decrease(
        stream in prop::collection::vec((0usize..4, any_handshake()), 1..120),
        label_sets in 1usize..6,
    ) {
        let mut ledger = Ledger::new(Limits { services: 2, label_sets });
        let (mut cpu, mut before) = (Duration::ZERO, counters(&ledger));
        for (service, handshake) in &stream {
            ledger.record(["a", "b", "c", "d"][*service], handshake);
            cpu += handshake.cpu;
            let now = counters(&ledger);
            prop_assert!(before.iter().zip(&now).all(|(was, is)| was <= is));
            // At every moment: nothing waits, so that nothing is caught up on later.
            prop_assert_eq!(now.iter().sum::<Duration>(), cpu);
            before = now;
        }
        let mut count = 0;
        let mut total = Duration::ZERO;
        for (_, account) in ledger.services() {
            for role in account.roles.values() {
                let settled = role.steps.settled();
                let sum = |of: &StepAccount| -> Duration {
                    Step::ALL.iter().map(|&step| of.cpu(step)).sum::<Duration>() + of.unmeasured().cpu()
                };
                prop_assert_eq!(sum(&settled), sum(&role.steps));
                prop_assert!(settled.unmeasured().handshakes <= role.steps.unmeasured().handshakes);
            }
            total += account.handshake_cpu();
            count += account.handshake_count();
            // Overflow keeps role, resumption, outcome and source: 2 x 2 x 3 x 2 here.
            prop_assert!(account.handshakes.len() <= label_sets + 24);
        }
        prop_assert_eq!(total, cpu);
        prop_assert_eq!(count, stream.len() as u64);
        prop_assert!(ledger.services().count() <= 3);
    }
}

#[test]
fn reasons_beyond_the_limit_count_under_zero() {
    let mut ledger = Ledger::default();
    for number in 1..=40 {
        let failed = Handshake {
            outcome: Outcome::Failed,
            error_reason: Some(Reason { library: 1, number }),
            ..handshake()
        };
        ledger.record("nginx", &failed);
    }
    let account = ledger.service("nginx").unwrap();
    let (key, sum) = account.handshakes.iter().next().unwrap();
    assert_eq!(sum.errors.len(), REASONS + 1);
    assert_eq!(sum.errors[&Reason::default()], 8);
    assert_eq!((key.outcome, sum.count), (Outcome::Failed, 40));
}

#[test]
fn a_nonsense_time_does_not_spoil_the_sums() {
    let mut ledger = Ledger::default();
    let broken = Handshake {
        cpu: Duration::MAX,
        duration: Duration::MAX,
        ..handshake()
    };
    ledger.record("nginx", &broken);
    ledger.record("nginx", &broken);
    let account = ledger.service("nginx").unwrap();
    assert_eq!(account.handshake_cpu(), Duration::from_secs(7200));
}

fn connection() -> Connection {
    Connection {
        ended: Duration::from_secs(10),
        ..sample::connection()
    }
}

#[test]
fn connections_are_told_apart_by_role_and_closer() {
    let mut ledger = Ledger::default();
    ledger.record_opening("nginx", &sample::opening(Role::Server));
    ledger.record_connection("nginx", &connection());
    let reset = Connection {
        closed_by: Closer::Remote,
        reset: true,
        time_wait: false,
        ..connection()
    };
    ledger.record_connection("nginx", &reset);
    let account = &ledger.service("nginx").unwrap().connections[&Role::Server];
    assert_eq!((account.opened, account.closed_count()), (1, 2));
    assert_eq!(account.closed[&Closer::Remote].reset, 1);
    assert_eq!(account.closed[&Closer::Local].reset, 0);
    assert_eq!(account.time_wait_created, 1);
    assert_eq!(account.time_wait_standing(Duration::from_secs(11)), 1);
}

#[test]
fn standing_time_wait_is_no_more_than_the_kernel_counts() {
    let mut ledger = Ledger::default();
    for _ in 0..5 {
        ledger.record_connection("nginx", &connection());
    }
    let standing = |ledger: &Ledger| {
        let account = &ledger.service("nginx").unwrap().connections[&Role::Server];
        account.time_wait_standing(Duration::from_secs(11))
    };
    ledger.bound_time_wait("nginx", 7);
    assert_eq!(standing(&ledger), 5);
    ledger.bound_time_wait("nginx", 3);
    assert_eq!(standing(&ledger), 3);
}

#[test]
fn a_connection_from_before_is_in_no_other_figure() {
    let mut ledger = Ledger::default();
    let from_before = Connection {
        whole: None,
        ..connection()
    };
    ledger.record_connection("nginx", &from_before);
    let account = ledger.service("nginx").unwrap();
    assert!(account.connections.is_empty());
    assert_eq!(account.connections_from_before, 1);
}

#[test]
fn turns_that_cannot_be_seen_are_not_zero() {
    let mut ledger = Ledger::default();
    let mut unseen = connection();
    unseen.whole.as_mut().unwrap().turns = None;
    ledger.record_connection("nginx", &unseen);
    let account = &ledger.service("nginx").unwrap().connections[&Role::Server];
    assert_eq!(account.closed[&Closer::Local].turns.count(), 0);
}

fn socket() -> Handshake {
    Handshake {
        source: Source::Socket,
        flights: Some([Duration::from_micros(800), Duration::from_micros(200)]),
        ..handshake()
    }
}

#[test]
fn a_socket_handshake_is_not_divided_like_those_of_the_library() {
    let mut ledger = Ledger::default();
    ledger.record("nginx", &measured([100, 600, 0, 0, 200, 100], true));
    ledger.record("nginx", &socket());
    let account = ledger.service("nginx").unwrap();
    let role = &account.roles[&Role::Server];
    assert_eq!(role.steps.cpu(Step::Signing), Duration::from_micros(600));
    assert_eq!(role.unmeasured_cpu(), Duration::from_millis(1));
    assert_eq!(role.socket.first_flight, Duration::from_micros(800));
    assert_eq!(role.costs[&Resumption::None].cpu.count(), 2);
    assert_eq!(account.count_by(Source::Socket), 1);
    assert_eq!(account.handshake_cpu(), Duration::from_millis(2));
}

#[test]
fn what_was_seen_of_offloaded_work_counts() {
    let mut ledger = Ledger::default();
    let offloaded = Handshake {
        offloaded: true,
        waits: [Duration::from_millis(1); WaitReason::COUNT],
        ..socket()
    };
    ledger.record("java", &offloaded);
    let account = ledger.service("java").unwrap();
    let role = &account.roles[&Role::Server];
    assert_eq!(account.handshake_count(), 1);
    assert_eq!(account.handshake_cpu(), offloaded.cpu);
    assert_eq!((role.socket.handshakes, role.socket.offloaded), (1, 1));
    assert_eq!(role.costs.len(), 1);
    assert_eq!(role.waits, offloaded.waits);
    assert_eq!(account.handshakes.values().next().unwrap().offloaded, 1);
}

fn with_hello(fixture: &str, role: Role) -> Handshake {
    let exchange = fixture::fed(fixture::read(fixture).whole());
    Handshake {
        role,
        hello: exchange.into_facts(),
        ..handshake()
    }
}

#[test]
fn hellos_are_counted_by_what_they_say() {
    let mut ledger = Ledger::default();
    for fixture in [
        "openssl35-tls13-full",
        "openssl30-tls13-psk-resumed",
        "openssl30-tls13-psk-refused",
        "openssl30-tls13-hrr",
        "openssl30-no-common-cipher",
    ] {
        ledger.record("mail", &with_hello(fixture, Role::Server));
    }
    let mut upgraded = with_hello("starttls-smtp-tls13", Role::Server);
    let facts: &mut Facts = upgraded.hello.as_mut().unwrap();
    facts.opening.upgrade = Some(Upgrade::Smtp);
    ledger.record("mail", &upgraded);
    ledger.record("mail", &handshake());
    let hellos = &ledger.service("mail").unwrap().roles[&Role::Server].hellos;
    assert_eq!(hellos.hellos, 6);
    let attempts: u64 = hellos.attempts.values().sum();
    assert_eq!(attempts, 6);
    assert_eq!(hellos.attempts[&(Attempt::Accepted, "psk")], 1);
    assert_eq!(hellos.attempts[&(Attempt::Refused, "psk")], 1);
    assert_eq!(hellos.attempts[&(Attempt::NotOffered, "none")], 3);
    assert_eq!(hellos.features["post_quantum"], 1);
    assert_eq!(hellos.features["hello_retry_request"], 1);
    assert_eq!(hellos.offered_groups()["X25519MLKEM768"], 1);
    assert_eq!(hellos.offered_versions()["TLS1.3"], 5);
    assert_eq!(hellos.upgrades["smtp"], 1);
    assert_eq!(hellos.alerts[&(true, "handshake_failure")], 1);
}

#[test]
fn an_alert_is_sent_by_one_and_received_by_the_other() {
    let mut ledger = Ledger::default();
    for role in [Role::Server, Role::Client] {
        ledger.record("both", &with_hello("openssl30-tls12-client-rejects", role));
    }
    let roles = &ledger.service("both").unwrap().roles;
    assert_eq!(
        roles[&Role::Server].hellos.alerts[&(false, "unknown_ca")],
        1
    );
    assert_eq!(roles[&Role::Client].hellos.alerts[&(true, "unknown_ca")], 1);
}

#[test]
fn numbers_without_a_name_are_one_for_each_client() {
    let mut handshake = with_hello("openssl30-tls13-full", Role::Server);
    let facts: &mut Facts = handshake.hello.as_mut().unwrap();
    let offer = facts.offer.as_mut().unwrap();
    offer.groups.extend([Group(0x1234), Group(0x1235)]);
    let mut ledger = Ledger::default();
    ledger.record("nginx", &handshake);
    let hellos = &ledger.service("nginx").unwrap().roles[&Role::Server].hellos;
    assert_eq!(hellos.offered_groups()["x25519"], 1);
    assert_eq!(hellos.offered_groups()["other"], 1);
}

#[test]
fn application_bytes_are_booked_by_cipher_within_bounds() {
    let mut ledger = Ledger::new(Limits {
        services: 10,
        label_sets: 1,
    });
    let carries = |carries, cipher| Connection {
        carries,
        cipher,
        application_received: 10,
        application_sent: 1000,
        ..connection()
    };
    for (tls, cipher) in [
        (Carries::Tls, "TLS_AES_128_GCM_SHA256"),
        (Carries::Tls, "TLS_AES_256_GCM_SHA384"),
        (Carries::Handshake, "TLS_AES_128_GCM_SHA256"),
        (Carries::Plain, "unknown"),
    ] {
        ledger.record_connection("nginx", &carries(tls, cipher));
    }
    let kept = &ledger.service("nginx").unwrap().roles[&Role::Server].application;
    let one = ApplicationBytes {
        received: 10,
        sent: 1000,
    };
    let expected = Application::from([("TLS_AES_128_GCM_SHA256", one), (OTHER, one)]);
    assert_eq!(*kept, expected);
}

#[test]
fn agreement_is_booked_apart() {
    let mut ledger = Ledger::default();
    let comparison = Comparison {
        process: 1,
        comm: "nginx".into(),
        role: Role::Server,
        began: Duration::ZERO,
        connection: None,
        library: Duration::from_micros(1000),
        socket: Duration::from_micros(1020),
    };
    ledger.record("nginx", &handshake());
    ledger.record_comparison("nginx", &comparison);
    let account = ledger.service("nginx").unwrap();
    assert_eq!(account.handshake_count(), 1);
    let agreement = &account.roles[&Role::Server].agreement;
    assert_eq!(agreement.handshakes, 1);
    assert_eq!(agreement.socket, Duration::from_micros(1020));
}
