//! Accept queues.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{ENOUGH, SERVICE, find, handshake, ledger};
use crate::{Finding, Severity};
use tlsprof_common::{Opening, Role};
use tlsprof_evidence::accept_queue::{AcceptQueues, Queue};
use tlsprof_evidence::sample::opening;
use tlsprof_ledger::Ledger;

struct Queued {
    opened: u64,
    drops: u64,
    length: u32,
    wait: Duration,
}

impl Queued {
    fn ledger(&self) -> Ledger {
        let mut kept = ledger(self.opened, |ledger| {
            let one = Opening {
                accept_wait: Some(self.wait),
                ..opening(Role::Server)
            };
            ledger.record_opening(SERVICE, &one);
        });
        let queues = AcceptQueues {
            listeners: 1,
            fullest: Queue {
                length: self.length,
                limit: 100,
            },
            overflows: self.drops,
        };
        kept.record_accept_queues(&BTreeMap::from([(SERVICE.to_owned(), queues)]));
        kept
    }

    fn found(&self) -> Option<Finding> {
        find(self.ledger(), 10.0, "accept-queue-overflow")
    }
}

const BURSTS: Queued = Queued {
    opened: 2000,
    drops: 10,
    length: 101,
    wait: Duration::from_millis(1),
};

#[test]
fn drops_at_their_thresholds() {
    let severity = |opened, drops| {
        let queued = Queued {
            opened,
            drops,
            ..BURSTS
        };
        queued.found().map(|finding| finding.severity)
    };
    assert_eq!(severity(2000, 9), None);
    assert_eq!(severity(2000, 10), Some(Severity::Medium));
    assert_eq!(severity(1980, 20), Some(Severity::High));
    assert_eq!(severity(1981, 20), Some(Severity::Medium));
    assert_eq!(severity(ENOUGH - 11, 10), None);
    assert_eq!(severity(ENOUGH - 10, 10), Some(Severity::High));
}

#[test]
fn a_queue_that_is_nearly_full_counts_if_connections_wait_in_it() {
    let found = |opened, length, millis| {
        let queued = Queued {
            opened,
            drops: 0,
            length,
            wait: Duration::from_millis(millis),
        };
        queued.found()
    };
    assert_eq!(found(ENOUGH, 79, 150), None);
    assert_eq!(found(ENOUGH, 80, 98), None);
    assert_eq!(found(ENOUGH - 1, 80, 150), None);
    let finding = found(ENOUGH, 80, 101).unwrap();
    assert_eq!(finding.severity, Severity::Low);
    assert!(finding.title.contains("nearly full"));
}

#[test]
fn the_cause_is_the_queue_the_server_or_its_handshakes() {
    let said = |kept| {
        let finding = find(kept, 1.0, "accept-queue-overflow").unwrap();
        finding.evidence.statements.join(" ")
    };
    assert!(said(BURSTS.ledger()).contains("too short for bursts"));
    let slow = Queued {
        wait: Duration::from_millis(500),
        ..BURSTS
    };
    assert!(said(slow.ledger()).contains("does not accept fast enough"));
    let mut busy = slow.ledger();
    for _ in 0..500 {
        busy.record(SERVICE, &handshake("x25519", "rsa_2048", [100, 700]));
    }
    assert!(said(busy).contains("TLS handshakes use 50.0% of its CPU"));
}
