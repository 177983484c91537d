//! Waits, failures, and the honest finding.

use std::time::Duration;

use super::{ENOUGH, SERVICE, find, handshake, ledger};
use crate::{Prediction, Severity};
use tlsprof_common::contract::TLSPROF_LIBRARY_OPENSSL;
use tlsprof_common::{Outcome, Reason, WaitReason};
use tlsprof_evidence::Handshake;
use tlsprof_evidence::hello::fixture;
use tlsprof_ledger::Ledger;

/// Handshakes of 950 us of CPU that wait so long for that reason.
fn waiting(number: u64, reason: WaitReason, micros: u64) -> Ledger {
    let mut one = handshake("x25519", "rsa_2048", [100, 650]);
    if let Some(wait) = one.waits.get_mut(reason as usize) {
        *wait = Duration::from_micros(micros);
    }
    // For the peer, which is nobody's fault here.
    if let Some(wait) = one.waits.last_mut() {
        *wait = Duration::from_millis(100);
    }
    ledger(number, |ledger| ledger.record(SERVICE, &one))
}

#[test]
fn waits_at_their_thresholds() {
    let cases = [
        (WaitReason::Lock, "lock-wait"),
        (WaitReason::Disk, "disk-wait"),
        (WaitReason::Random, "random-wait"),
        (WaitReason::Pipe, "pipe-wait"),
    ];
    for (reason, id) in cases {
        assert_eq!(find(waiting(ENOUGH - 1, reason, 500), 1.0, id), None);
        // 50 of 1,000 us are 5%.
        assert_eq!(find(waiting(ENOUGH, reason, 49), 1.0, id), None);
        let finding = find(waiting(ENOUGH, reason, 51), 1.0, id).unwrap();
        let Prediction::Latency(each) = finding.prediction else {
            unreachable!("{:?}", finding.prediction)
        };
        assert!((each.likely - 51e-6).abs() < 1e-9);
    }
    let network = waiting(1000, WaitReason::Network, 5000);
    for (_, id) in cases {
        assert_eq!(find(network.clone(), 1.0, id), None);
    }
}

fn failing(number: u64, failed: u64) -> Ledger {
    let mut kept = ledger(number - failed, |ledger| {
        ledger.record(SERVICE, &handshake("x25519", "rsa_2048", [100, 900]));
    });
    let facts = fixture::all()
        .iter()
        .find(|one| one.name == "openssl30-no-common-cipher")
        .and_then(|one| fixture::fed(one.whole()).into_facts());
    for _ in 0..failed {
        let one = Handshake {
            outcome: Outcome::Failed,
            error_reason: Some(Reason {
                library: TLSPROF_LIBRARY_OPENSSL,
                number: 193,
            }),
            hello: facts.clone(),
            ..handshake("none", "none", [0, 0])
        };
        kept.record(SERVICE, &one);
    }
    kept
}

#[test]
fn handshake_failures_at_their_thresholds() {
    let id = "handshake-failures";
    assert_eq!(find(failing(ENOUGH - 1, 50), 1.0, id), None);
    assert_eq!(find(failing(ENOUGH, 9), 1.0, id), None);
    assert!(find(failing(ENOUGH, 10), 1.0, id).is_some());
    assert_eq!(find(failing(2000, 19), 1.0, id), None);
    let one_percent = find(failing(2000, 20), 1.0, id).unwrap();
    assert_eq!(one_percent.severity, Severity::Medium);
    assert_eq!(
        find(failing(200, 20), 1.0, id).unwrap().severity,
        Severity::High
    );
}

#[test]
fn handshake_failures_tell_what_clients_offered() {
    let finding = find(failing(200, 20), 1.0, "handshake-failures").unwrap();
    let text = finding.evidence.statements.join(" ");
    assert!(
        finding.title.contains("no cipher suite"),
        "{}",
        finding.title
    );
    assert!(text.contains("The server sent the alert handshake failure 20 times"));
    assert!(text.contains("suites TLS_"), "{text}");
    assert!(text.contains("no shared cipher (20 times)"), "{text}");
}

/// 20 of the server's alerts, and failures of TLS 1.3 that only the library knows.
#[test]
fn handshake_failures_name_a_cause_in_the_title_only_if_most_fail_for_it() {
    for (others, expected) in [(20, true), (21, false)] {
        let mut kept = failing(200, 20);
        for _ in 0..others {
            let one = Handshake {
                outcome: Outcome::Failed,
                hello: None,
                ..handshake("none", "none", [0, 0])
            };
            kept.record(SERVICE, &one);
        }
        let finding = find(kept, 1.0, "handshake-failures").unwrap();
        assert_eq!(finding.title.contains("no cipher suite"), expected);
        let text = finding.evidence.statements.join(" ");
        assert!(text.contains("handshake failure 20 times"), "{text}");
    }
}

#[test]
fn tls_is_not_the_bottleneck_at_its_thresholds() {
    // 100 handshakes of 1 ms.
    let of = |n| {
        ledger(n, |ledger| {
            ledger.record(SERVICE, &handshake("x25519", "rsa_2048", [100, 700]));
        })
    };
    let id = "tls-is-not-the-bottleneck";
    assert_eq!(find(of(ENOUGH - 1), 10.0, id), None);
    assert_eq!(
        find(of(ENOUGH), 1.99, id),
        None,
        "5% and more are worth a change"
    );
    let finding = find(of(ENOUGH), 2.01, id).unwrap();
    assert_eq!(finding.severity, Severity::Info);
    // An idle service is no load to judge by.
    let idle = Handshake {
        cpu: Duration::from_micros(100),
        ..handshake("x25519", "rsa_2048", [50, 50])
    };
    let kept = ledger(ENOUGH, |ledger| ledger.record(SERVICE, &idle));
    assert_eq!(find(kept.clone(), 0.99, id), None);
    assert!(find(kept, 1.0, id).is_some());
}

#[test]
fn offloaded_handshakes_are_not_called_cheap() {
    let one = Handshake {
        offloaded: true,
        ..handshake("x25519", "rsa_2048", [100, 700])
    };
    let kept = ledger(1000, |ledger| ledger.record(SERVICE, &one));
    assert_eq!(find(kept, 100.0, "tls-is-not-the-bottleneck"), None);
}
