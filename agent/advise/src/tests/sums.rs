//! Savings of several kinds of handshake together, where the cost of some is unknown.

use super::certificates::{ECDSA, certificate13, tls13};
use super::handshakes::{P256, P384, p384, refused, slow};
use super::{
    ENOUGH, RSA_PSS, SERVICE, X25519, find, handshake, is_unknown, ledger, likely_seconds,
    of_fixture,
};
use crate::Finding;
use tlsprof_common::{Resumption, Source};
use tlsprof_evidence::Handshake;
use tlsprof_ledger::Ledger;

fn record(ledger: &mut Ledger, number: u64, one: &Handshake) {
    (0..number).for_each(|_| ledger.record(SERVICE, one));
}

/// As socket calls show it.
fn without_steps(one: Handshake) -> Handshake {
    Handshake {
        source: Source::Socket,
        steps: None,
        ..one
    }
}

/// A refused session of TLS 1.2.
fn refused12() -> Handshake {
    let mut facts = of_fixture("openssl30-tls12-session-id-refused").unwrap();
    facts.forget_sessions(true);
    Handshake {
        hello: Some(facts),
        version: "TLS1.2",
        ..handshake("x25519", "rsa_2048", [100, 1000])
    }
}

fn resumed13() -> Handshake {
    Handshake {
        resumption: Resumption::Psk,
        ..handshake("x25519", "none", [100, 0])
    }
}

/// A saving of so many seconds, which is said to leave some out, and for which a calibration may
/// find the rest.
fn check_lower_bound(finding: &Finding, seconds: f64) {
    assert!((likely_seconds(finding) - seconds).abs() < 1e-6);
    let saving = finding.prediction.saving().unwrap();
    assert!(saving.method.contains("lower bound"), "{}", saving.method);
    assert_eq!(finding.wants_calibrated(), finding.kind.calibration);
}

#[test]
fn a_rare_kind_of_refusal_does_not_hide_what_the_others_cost() {
    let mut kept = refused(5000);
    record(&mut kept, 500, &resumed13());
    let whole = find(kept.clone(), 20.0, "resumption-refused").unwrap();
    let method = &whole.prediction.saving().unwrap().method;
    assert!(!method.contains("lower bound"), "{method}");
    record(&mut kept, 5, &refused12());
    let finding = find(kept, 20.0, "resumption-refused").unwrap();
    // 1 ms each.
    check_lower_bound(&finding, 5.0);
}

#[test]
fn a_client_whose_faster_group_has_no_cost_is_left_out() {
    let mut kept = slow(1000, &[P384, X25519]);
    let whole = find(kept.clone(), 4.0, "slow-key-exchange").unwrap();
    assert_eq!(whole.wants_calibrated(), None);
    record(&mut kept, 1, &p384(&[P384, P256]));
    let finding = find(kept, 4.0, "slow-key-exchange").unwrap();
    check_lower_bound(&finding, 1.0);
}

fn rsa_4096() -> Handshake {
    Handshake {
        hello: tls13(&[RSA_PSS, ECDSA]),
        ..handshake("x25519", "rsa_4096", [100, 6000])
    }
}

#[test]
fn a_rare_key_whose_signature_has_no_cost_is_left_out() {
    let mut kept = certificate13(5000, &[RSA_PSS, ECDSA]);
    record(&mut kept, 3, &rsa_4096());
    let finding = find(kept, 20.0, "costly-certificate").unwrap();
    check_lower_bound(&finding, 5.0);
    assert!(finding.title.contains("RSA-2048"), "{}", finding.title);
}

/// 1% of the CPU is known to be saved; the rest, of unknown cost, may be worth it.
#[test]
fn nothing_is_predicted_where_only_too_small_a_part_is_known() {
    let check = |mut kept: Ledger, unknown: &Handshake, id: &str| {
        record(&mut kept, ENOUGH, unknown);
        let finding = find(kept.clone(), 1.0, id).unwrap();
        assert!(is_unknown(&finding), "{finding:?}");
        assert_eq!(find(kept, 100.0, id), None, "{id}");
    };
    let part = slow(10, &[P384, X25519]);
    check(part, &p384(&[P384, P256]), "slow-key-exchange");
    let part = certificate13(10, &[RSA_PSS, ECDSA]);
    check(part, &without_steps(rsa_4096()), "costly-certificate");
    let facts = of_fixture("openssl30-tls13-psk-refused");
    let mut part = ledger(10, |ledger| {
        let one = handshake("x25519", "rsa_2048", [100, 1000]);
        let hello = facts.clone();
        ledger.record(SERVICE, &without_steps(Handshake { hello, ..one }));
    });
    record(&mut part, 10, &without_steps(resumed13()));
    check(part, &without_steps(refused12()), "resumption-refused");
}
