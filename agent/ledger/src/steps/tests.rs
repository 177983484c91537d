//! How measured handshakes speak for others.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::super::Ledger;
use super::super::tests::{handshake, measured};
use super::*;
use tlsprof_common::Role;
use tlsprof_evidence::Handshake;

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

fn steps(ledger: &Ledger) -> StepAccount {
    ledger.service("nginx").unwrap().roles[&Role::Server]
        .steps
        .clone()
}

#[test]
fn handshakes_before_the_first_measured_one_stay_unmeasured_but_in_a_report() {
    let mut ledger = Ledger::default();
    ledger.record("nginx", &handshake());
    assert_eq!(steps(&ledger).unmeasured().cpu(), Duration::from_millis(1));

    // Public-key work is known now, key derivation is not: the rest is other.
    ledger.record("nginx", &measured([100, 600, 0, 0, 0, 300], false));
    let counted = steps(&ledger);
    assert_eq!(counted.unmeasured().handshakes, 1);
    assert_eq!(counted.handshakes(Step::Signing), 1);
    assert_eq!(counted.cpu(Step::Signing), Duration::from_micros(600));
    assert_eq!(counted.cpu(Step::Other), Duration::from_micros(300));

    ledger.record("nginx", &measured([100, 600, 0, 0, 200, 100], true));
    let counted = steps(&ledger);
    assert_eq!(counted.unmeasured().handshakes, 1);
    assert_eq!(counted.cpu(Step::KeyDerivation), Duration::from_micros(200));
    assert_eq!(counted.handshakes(Step::KeyDerivation), 1);
    assert_eq!(counted.measured_handshakes(Step::KeyDerivation), 1);

    let settled = counted.settled();
    assert_eq!(settled.unmeasured(), Pending::default());
    assert_eq!(settled.handshakes(Step::KeyDerivation), 3);
    assert_eq!(settled.cpu(Step::Signing), Duration::from_micros(1800));
    assert_eq!(settled.cpu(Step::KeyDerivation), Duration::from_micros(600));
    assert_eq!(settled.cpu(Step::Other), Duration::from_micros(300));
}

#[test]
fn an_unknown_signature_is_divided_like_its_group_or_else_like_its_resumption() {
    let mut ledger = Ledger::default();
    let unknown = |group| Handshake {
        signature: "unknown",
        group,
        ..handshake()
    };
    ledger.record("nginx", &unknown("x25519"));
    ledger.record("nginx", &measured([100, 700, 0, 0, 0, 200], true));
    let slow = Handshake {
        signature: "rsa_4096",
        ..measured([100, 2700, 0, 0, 0, 200], true)
    };
    ledger.record("nginx", &slow);
    let other_group = Handshake {
        group: "secp384r1",
        ..measured([3000, 0, 0, 0, 0, 1000], true)
    };
    ledger.record("nginx", &other_group);
    let known = steps(&ledger);
    assert_eq!(known.unmeasured().handshakes, 1);

    // 3,400 of 4,000 us of that group's handshakes; 3,400 of 8,000 us of all.
    for (group, signing) in [("x25519", 850), ("secp521r1", 425)] {
        let mut ledger = ledger.clone();
        ledger.record("nginx", &unknown(group));
        let divided = steps(&ledger).cpu(Step::Signing) - known.cpu(Step::Signing);
        assert_eq!(divided, Duration::from_micros(signing), "{group}");
        assert_eq!(steps(&ledger).unmeasured().handshakes, 1);
    }

    // A resumed handshake is no measure for a full one, nor is one signature for another.
    let ecdsa = Handshake {
        signature: "ecdsa_p256",
        ..handshake()
    };
    let resumed = Handshake {
        resumption: Resumption::Psk,
        ..unknown("x25519")
    };
    ledger.record("nginx", &ecdsa);
    ledger.record("nginx", &resumed);
    assert_eq!(steps(&ledger).unmeasured().handshakes, 3);
}

#[test]
fn key_derivation_that_is_never_measured_is_in_other() {
    let mut ledger = Ledger::default();
    for _ in 0..10 {
        ledger.record("nginx", &measured([100, 600, 0, 0, 0, 300], false));
    }
    let steps = steps(&ledger).settled();
    assert_eq!(steps.cpu(Step::Other), Duration::from_micros(300 * 10));
    assert_eq!(steps.handshakes(Step::KeyDerivation), 0);
    assert_eq!(steps.measured_handshakes(Step::KeyDerivation), 0);
}
