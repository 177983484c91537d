//! Long certificate chains.

use std::time::Duration;

use super::{ENOUGH, SERVICE, find, handshake, ledger, of_fixture};
use crate::{Finding, Prediction, Severity};
use tlsprof_common::{Carries, Connection, Resumption};
use tlsprof_evidence::{Handshake, sample};
use tlsprof_ledger::Ledger;

const ID: &str = "long-certificate-chain";

/// A connection on which a full handshake sent so many bytes, and 3,000 came after it.
fn full(handshake: u64, round_trip: Duration) -> Connection {
    Connection {
        carries: Carries::Tls,
        resumption: Resumption::None,
        bytes_sent: handshake + 3000,
        application_sent: 3000,
        segment: 1460,
        round_trip: Some(round_trip),
        ..sample::connection()
    }
}

/// So many handshakes that take 10 ms from end to end, on such connections.
fn of(number: u64, connection: &Connection) -> Ledger {
    let one = Handshake {
        duration: Duration::from_millis(10),
        ..handshake("x25519", "rsa_2048", [100, 900])
    };
    ledger(number, |ledger| {
        ledger.record(SERVICE, &one);
        ledger.record_connection(SERVICE, connection);
    })
}

fn sent(number: u64, bytes: u64) -> Option<Finding> {
    find(of(number, &full(bytes, Duration::from_micros(1))), 1.0, ID)
}

#[test]
fn a_chain_beyond_the_usual_at_its_thresholds() {
    assert_eq!(sent(ENOUGH - 1, 9000), None);
    // 421 of 8,421 bytes are 5%.
    assert_eq!(sent(ENOUGH, 5420), None);
    let finding = sent(ENOUGH, 5422).unwrap();
    assert_eq!(finding.severity, Severity::Low);
    assert_eq!(finding.prediction, Prediction::Nothing);
    let text = finding.evidence.statements.join(" ");
    assert!(text.contains("TLS 1.3 encrypts"), "{text}");
}

#[test]
fn a_long_chain_beside_much_data_is_no_finding() {
    let much = Connection {
        bytes_sent: 1_009_000,
        application_sent: 1_000_000,
        ..full(9000, Duration::from_micros(1))
    };
    assert_eq!(find(of(1000, &much), 1.0, ID), None);
}

/// What only the wait for a round trip can tell: the bytes are few among others.
fn waiting(bytes: u64, round_trip: u64) -> Option<Finding> {
    let connection = Connection {
        bytes_sent: bytes + 1_000_000,
        application_sent: 1_000_000,
        ..full(bytes, Duration::from_micros(round_trip))
    };
    find(of(ENOUGH, &connection), 1.0, ID)
}

#[test]
fn a_flight_beyond_the_first_window_at_its_thresholds() {
    // Ten segments of 1,460 bytes.
    assert_eq!(waiting(14_600, 5000), None);
    // 500 us are 5% of a handshake's 10 ms.
    assert_eq!(waiting(14_601, 499), None);
    let finding = waiting(14_601, 501).unwrap();
    assert_eq!(finding.severity, Severity::Medium);
    let Prediction::Latency(each) = finding.prediction else {
        unreachable!("{:?}", finding.prediction)
    };
    assert!((each.likely - 501e-6).abs() < 1e-9);
}

#[test]
fn a_window_of_long_segments_is_as_much_longer() {
    let loopback = Connection {
        segment: 65_483,
        ..full(20_000, Duration::from_secs(1))
    };
    let finding = find(of(ENOUGH, &loopback), 1.0, ID).unwrap();
    assert_eq!(finding.severity, Severity::Low, "by its bytes alone");
    assert!(
        finding
            .evidence
            .figures
            .contains(&("beyond_first_window", 0.0))
    );
}

#[test]
fn resumed_and_unfinished_handshakes_send_no_chain() {
    let long = full(20_000, Duration::from_millis(5));
    for other in [
        Connection {
            resumption: Resumption::Psk,
            ..long.clone()
        },
        Connection {
            resumption: Resumption::Unknown,
            ..long.clone()
        },
        Connection {
            carries: Carries::Handshake,
            ..long
        },
    ] {
        assert_eq!(find(of(1000, &other), 1.0, ID), None);
    }
}

#[test]
fn certificates_in_clear_are_counted() {
    let mut kept = of(ENOUGH, &full(9000, Duration::from_micros(1)));
    let seen = Handshake {
        hello: of_fixture("openssl30-tls12-full"),
        ..handshake("x25519", "rsa_2048", [100, 900])
    };
    kept.record(SERVICE, &seen);
    let finding = find(kept, 1.0, ID).unwrap();
    assert!(finding.evidence.figures.contains(&("certificates", 1.0)));
    let text = finding.evidence.statements.join(" ");
    assert!(
        text.contains("1 handshake up to TLS 1.2 carried 1.0 certificates"),
        "{text}"
    );
}
