//! Certificates and their keys.

use std::time::Duration;

use super::{
    ENOUGH, RSA_PSS, SERVICE, X25519, check, find, found, handshake, hello, ledger, likely_seconds,
};
use crate::{Calibration, Operation, Range};
use tlsprof_common::Source;
use tlsprof_evidence::Handshake;
use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_evidence::hello::{Facts, fixture};
use tlsprof_evidence::primitive::{Evidence, Primitive};
use tlsprof_ledger::{Ledger, Sampling};

pub(super) const ECDSA: u16 = 0x0403;

fn rsa(signatures: &[u16]) -> Handshake {
    Handshake {
        hello: hello(&[X25519], signatures),
        ..handshake("x25519", "rsa_2048", [100, 1100])
    }
}

fn certificate(number: u64, signatures: &[u16]) -> Ledger {
    let mut kept = ledger(number, |ledger| ledger.record(SERVICE, &rsa(signatures)));
    for _ in 0..20 {
        kept.record(SERVICE, &handshake("x25519", "ecdsa_p256", [100, 100]));
    }
    kept
}

/// What the hello of a completed TLS 1.3 handshake says, with another offer.
pub(super) fn tls13(signatures: &[u16]) -> Option<Box<Facts>> {
    let all = fixture::all().iter();
    let mut full = all.filter(|one| one.name == "openssl35-tls13-full");
    let mut facts = fixture::fed(full.next()?.whole()).into_facts()?;
    let offer = hello(&[X25519], signatures)?.offer.clone();
    facts.offer = offer;
    Some(facts)
}

pub(super) fn certificate13(number: u64, signatures: &[u16]) -> Ledger {
    let mut kept = certificate(0, signatures);
    let one = Handshake {
        hello: tls13(signatures),
        ..rsa(signatures)
    };
    for _ in 0..number {
        kept.record(SERVICE, &one);
    }
    kept
}

#[test]
fn costly_certificate_at_its_thresholds() {
    check("costly-certificate", 2.0, |n| {
        certificate13(n, &[RSA_PSS, ECDSA])
    });
    let finding = find(certificate13(100, &[ECDSA]), 1.0, "costly-certificate").unwrap();
    assert!((likely_seconds(&finding) - 0.1).abs() < 1e-9);
}

#[test]
fn costly_certificate_needs_clients_that_accept_ecdsa() {
    let kept = certificate13(1000, &[RSA_PSS]);
    assert_eq!(find(kept, 1.0, "costly-certificate"), None);
    // Up to TLS 1.2 the algorithm alone does not do: no suite, no curve.
    let kept = certificate(1000, &[ECDSA]);
    assert_eq!(find(kept, 1.0, "costly-certificate"), None);
}

/// A closed server that signs with a key that nobody sees: 10 ms for a sample.
fn hidden(number: u64, computed: [(Primitive, u64); 2]) -> Ledger {
    let mut kept = ledger(0, |_| {});
    kept.set_sampling(Sampling::Every(Duration::from_millis(10)));
    let one = Handshake {
        hello: tls13(&[RSA_PSS, ECDSA]),
        steps: None,
        source: Source::Socket,
        ..handshake("x25519", "unknown", [100, 1100])
    };
    (0..number).for_each(|_| kept.record(SERVICE, &one));
    let all = computed.iter().map(|(_, count)| count).sum();
    kept.add_samples(SERVICE, Activity::Handshake, Mode::User, all);
    kept.add_cpu(SERVICE, Duration::from_millis(10 * all), Duration::ZERO);
    let counts =
        computed.map(|(one, count)| ((Activity::Handshake, one, Evidence::Name, None), count));
    kept.note_primitives(SERVICE, &counts.into());
    kept
}

#[test]
fn costly_certificate_by_the_code_of_signatures_that_tls_1_3_hides() {
    let of = |kind| {
        let signing = Operation::Signing("ecdsa_p256");
        let calibration = Calibration::from([(signing, Range::around(1e-3, 0.0))]);
        let kept = hidden(ENOUGH, [(Primitive::Curve25519, 50), (kind, 150)]);
        let found = found(kept, 0.0, calibration).into_iter();
        let mut found = found.filter(|one| one.kind == super::kind("costly-certificate"));
        found.next()
    };
    // 15 ms in each of 100 handshakes, less 1 ms.
    let finding = of(Primitive::RsaDh).unwrap();
    assert!((likely_seconds(&finding) - 1.4).abs() < 1e-9, "{finding:?}");
    assert!(finding.title.contains("an RSA key"), "{}", finding.title);
    let statement = finding.evidence.statements.first().unwrap();
    assert!(statement.contains("signed with RSA;"), "{statement}");
    assert!(statement.contains("tells the kind of key"), "{statement}");
    assert_eq!(of(Primitive::P256), None);
    assert_eq!(of(Primitive::BigNumber), None);
}
