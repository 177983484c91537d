//! What must hold whatever comes: parts add up, counters never decrease, and
//! memory is bounded.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;

use super::*;
use crate::evidence::{Closer, Connection, Steps, sample};

const GROUPS: [&str; 3] = ["x25519", "secp384r1", "none"];
const SIGNATURES: [&str; 3] = ["rsa_2048", "ecdsa_p256", "none"];

fn handshake() -> Handshake {
    Handshake {
        cpu: Duration::from_micros(1000),
        duration: Duration::from_millis(3),
        steps: None,
        waits: [Duration::ZERO; 7],
        ..sample::handshake()
    }
}

fn measured(micros: [u64; 6], key_derivation_observed: bool) -> Handshake {
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
    fn any_handshake()(
        server in any::<bool>(),
        outcome in prop::sample::select(vec![Outcome::Completed, Outcome::Failed, Outcome::Abandoned]),
        resumption in prop::sample::select(vec![Resumption::None, Resumption::Psk]),
        group in prop::sample::select(GROUPS.to_vec()),
        signature in prop::sample::select(SIGNATURES.to_vec()),
        nanos in prop::array::uniform6(0u64..5_000_000),
        unmeasured in any::<bool>(),
        key_derivation_observed in any::<bool>(),
        wait in 0u64..1_000_000,
    ) -> Handshake {
        let mut cpu = nanos.map(Duration::from_nanos);
        let total = cpu.iter().sum();
        if !key_derivation_observed {
            cpu[5] += cpu[4];
            cpu[4] = Duration::ZERO;
        }
        Handshake {
            role: if server { Role::Server } else { Role::Client },
            outcome, resumption, group, signature,
            cpu: total,
            steps: (!unmeasured).then_some(Steps { cpu, key_derivation_observed }),
            waits: [Duration::from_nanos(wait); 7],
            ..handshake()
        }
    }
}

fn counters(ledger: &Ledger) -> Vec<Duration> {
    let mut all = Vec::new();
    for service in ["a", "b", OTHER] {
        for role in [Role::Server, Role::Client] {
            let account = ledger.service(service).and_then(|s| s.roles.get(&role));
            for step in Step::ALL {
                all.push(account.map_or(Duration::ZERO, |a| a.steps.cpu(step)));
            }
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
            before = now;
        }
        let mut count = 0;
        let mut total = Duration::ZERO;
        for (_, account) in ledger.services() {
            let parts: Duration = account
                .roles
                .values()
                .map(|role| role.cpu_in_steps() + role.cpu_in_no_step())
                .sum();
            prop_assert_eq!(parts, account.handshake_cpu());
            total += account.handshake_cpu();
            count += account.handshake_count();
            // Overflow keeps role, resumption and outcome: 2 x 2 x 3 here.
            prop_assert!(account.handshakes.len() <= label_sets + 12);
        }
        prop_assert_eq!(total, cpu);
        prop_assert_eq!(count, stream.len() as u64);
        prop_assert!(ledger.services().count() <= 3);
    }
}

#[test]
fn an_unmeasured_handshake_is_divided_like_the_measured_ones() {
    let mut ledger = Ledger::default();
    ledger.record("nginx", &measured([100, 600, 0, 0, 200, 100], true));
    ledger.record("nginx", &handshake());
    let steps = &ledger.service("nginx").unwrap().roles[&Role::Server].steps;
    assert_eq!(steps.cpu(Step::Signing), Duration::from_micros(1200));
    assert_eq!(steps.cpu(Step::KeyDerivation), Duration::from_micros(400));
    assert_eq!(steps.measured_handshakes(Step::Signing), 1);
    assert_eq!(steps.handshakes(Step::Signing), 2);
}

#[test]
fn handshakes_before_the_first_measured_one_wait_for_it() {
    let mut ledger = Ledger::default();
    ledger.record("nginx", &handshake());
    let steps = |ledger: &Ledger| {
        ledger.service("nginx").unwrap().roles[&Role::Server]
            .steps
            .clone()
    };
    assert_eq!(steps(&ledger).cpu(Step::Other), Duration::ZERO);
    assert_eq!(steps(&ledger).undivided().cpu(), Duration::from_millis(1));

    // Public-key work is known now, key derivation is not.
    ledger.record("nginx", &measured([100, 600, 0, 0, 0, 300], false));
    assert_eq!(steps(&ledger).undivided().handshakes, 0);
    assert_eq!(
        steps(&ledger).cpu(Step::Signing),
        Duration::from_micros(1200)
    );
    assert_eq!(
        steps(&ledger).rest_undivided().cpu(),
        Duration::from_micros(600)
    );

    ledger.record("nginx", &measured([100, 600, 0, 0, 200, 100], true));
    assert_eq!(steps(&ledger).rest_undivided().handshakes, 0);
    assert_eq!(
        steps(&ledger).cpu(Step::KeyDerivation),
        Duration::from_micros(600)
    );
    assert_eq!(steps(&ledger).handshakes(Step::KeyDerivation), 3);
    assert_eq!(steps(&ledger).measured_handshakes(Step::KeyDerivation), 1);
}

#[test]
fn key_derivation_that_is_never_measured_ends_up_in_other() {
    let mut ledger = Ledger::default();
    for _ in 0..10_001 {
        ledger.record("nginx", &measured([100, 600, 0, 0, 0, 300], false));
    }
    let steps = &ledger.service("nginx").unwrap().roles[&Role::Server].steps;
    assert_eq!(steps.rest_undivided().handshakes, 0);
    assert_eq!(steps.cpu(Step::Other), Duration::from_micros(300 * 10_001));
    assert_eq!(steps.measured_handshakes(Step::KeyDerivation), 0);
}

#[test]
fn services_beyond_the_limit_count_under_other() {
    let mut ledger = Ledger::new(Limits {
        services: 1,
        label_sets: 10,
    });
    for service in ["a", "b", "c", "a"] {
        ledger.record(service, &handshake());
    }
    assert_eq!(ledger.service("a").unwrap().handshake_count(), 2);
    assert_eq!(ledger.service(OTHER).unwrap().handshake_count(), 2);
    assert_eq!(ledger.booked_name("z"), OTHER);
}

#[test]
fn reasons_beyond_the_limit_count_under_zero() {
    let mut ledger = Ledger::default();
    for reason in 1..=40 {
        let failed = Handshake {
            outcome: Outcome::Failed,
            error_reason: Some(reason),
            ..handshake()
        };
        ledger.record("nginx", &failed);
    }
    let account = ledger.service("nginx").unwrap();
    let sum = account.handshakes.values().next().unwrap();
    assert_eq!(sum.errors.len(), REASONS + 1);
    assert_eq!(sum.errors[&0], 8);
    assert_eq!(account.count_of(Outcome::Failed), 40);
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
    ledger.record_opening("nginx", Role::Server);
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
