//! Key exchange and resumption.

use std::time::Duration;

use super::{
    ENOUGH, RSA_PSS, SERVICE, X25519, check, find, found, handshake, hello, is_unknown, ledger,
    likely_seconds, of_fixture,
};
use crate::{Calibration, CostSource, Operation, Prediction, Range, Severity};
use tlsprof_common::{Outcome, Resumption, Role, Source};
use tlsprof_evidence::Handshake;
use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_evidence::primitive::{Evidence, Primitive};
use tlsprof_ledger::{Ledger, Sampling};

pub(super) const P256: u16 = 23;
pub(super) const P384: u16 = 24;

pub(super) fn p384(groups: &[u16]) -> Handshake {
    Handshake {
        hello: hello(groups, &[RSA_PSS]),
        ..handshake("secp384r1", "rsa_2048", [1100, 900])
    }
}

/// Twenty handshakes with X25519, which tell its cost.
pub(super) fn with_x25519(ledger: &mut Ledger) {
    for _ in 0..20 {
        ledger.record(SERVICE, &handshake("x25519", "rsa_2048", [100, 900]));
    }
}

pub(super) fn slow(number: u64, groups: &[u16]) -> Ledger {
    let mut ledger = ledger(number, |ledger| ledger.record(SERVICE, &p384(groups)));
    with_x25519(&mut ledger);
    ledger
}

#[test]
fn slow_key_exchange_at_its_thresholds() {
    // 100 times 1 ms.
    check("slow-key-exchange", 2.0, |n| slow(n, &[P384, X25519]));
}

#[test]
fn slow_key_exchange_predicts_the_difference_of_the_steps() {
    let finding = find(slow(100, &[P384, X25519]), 0.4, "slow-key-exchange").unwrap();
    assert!((likely_seconds(&finding) - 0.1).abs() < 1e-9);
    let saving = finding.prediction.saving().unwrap();
    assert_eq!(saving.source, CostSource::ThisService);
    assert!((saving.share.likely - 0.25).abs() < 1e-9);
    assert!(saving.share.low < 0.25 && saving.share.high > 0.25);
    assert_eq!(finding.severity, Severity::High);
}

#[test]
fn nothing_is_predicted_where_the_accounts_disagree() {
    // Handshakes of 0.244 s.
    for (cpu, predicted) in [(0.25, true), (0.24, true), (0.2, false), (0.0, false)] {
        let finding = find(slow(100, &[P384, X25519]), cpu, "slow-key-exchange").unwrap();
        assert_eq!(finding.prediction.saving().is_some(), predicted, "{cpu}");
        assert_eq!(is_unknown(&finding), !predicted, "{cpu}");
    }
}

#[test]
fn slow_key_exchange_needs_clients_that_offer_better() {
    let only = find(slow(100, &[P384]), 0.1, "slow-key-exchange");
    assert_eq!(only, None);
    // Half of them: half of the handshakes, and those are too few.
    let mut half = slow(50, &[P384, X25519]);
    for _ in 0..50 {
        half.record(SERVICE, &p384(&[P384]));
    }
    assert_eq!(find(half, 0.1, "slow-key-exchange"), None);
}

#[test]
fn slow_key_exchange_with_p256_in_place_of_x25519() {
    let mut kept = ledger(100, |ledger| ledger.record(SERVICE, &p384(&[P384, P256])));
    for _ in 0..20 {
        kept.record(SERVICE, &handshake("secp256r1", "rsa_2048", [200, 900]));
    }
    let finding = find(kept, 0.4, "slow-key-exchange").unwrap();
    assert!((likely_seconds(&finding) - 0.09).abs() < 1e-9);
    assert!(finding.title.contains("P-256"), "{}", finding.title);
}

#[test]
fn slow_key_exchange_without_any_cost_has_no_figure() {
    let of = |n| ledger(n, |ledger| ledger.record(SERVICE, &p384(&[P384, X25519])));
    // All of the key exchange is held against the threshold: 100 times 1.1 ms.
    check("slow-key-exchange", 2.2, of);
    let finding = find(of(100), 1.0, "slow-key-exchange").unwrap();
    assert!(is_unknown(&finding));
}

#[test]
fn slow_key_exchange_of_socket_calls_compares_whole_handshakes() {
    let socket = |one: Handshake| Handshake {
        source: Source::Socket,
        steps: None,
        ..one
    };
    let mut kept = ledger(100, |ledger| {
        ledger.record(SERVICE, &socket(p384(&[P384, X25519])));
    });
    for _ in 0..20 {
        kept.record(
            SERVICE,
            &socket(handshake("x25519", "rsa_2048", [100, 900])),
        );
    }
    let finding = find(kept, 0.4, "slow-key-exchange").unwrap();
    assert!((likely_seconds(&finding) - 0.1).abs() < 1e-9);
}

#[test]
fn a_fast_group_is_no_finding() {
    let kept = ledger(1000, |ledger| {
        let one = Handshake {
            hello: hello(&[P384, X25519], &[RSA_PSS]),
            ..handshake("x25519", "rsa_2048", [100, 900])
        };
        ledger.record(SERVICE, &one);
    });
    assert_eq!(find(kept, 1.0, "slow-key-exchange"), None);
}

#[test]
fn verification_at_its_thresholds() {
    let of = |n| {
        ledger(n, |ledger| {
            let mut one = handshake("x25519", "rsa_2048", [100, 900]);
            one.cpu += Duration::from_micros(1000);
            one.steps = one.steps.map(|mut steps| {
                steps.cpu = [100, 900, 1000, 0, 50, 150].map(Duration::from_micros);
                steps
            });
            ledger.record(SERVICE, &one);
        })
    };
    check("certificate-verification", 2.0, of);
}

pub(super) fn refused(number: u64) -> Ledger {
    let facts = of_fixture("openssl30-tls13-psk-refused");
    ledger(number, |ledger| {
        let one = Handshake {
            hello: facts.clone(),
            ..handshake("x25519", "rsa_2048", [100, 1000])
        };
        ledger.record(SERVICE, &one);
    })
}

#[test]
fn resumption_refused_at_its_thresholds() {
    // TLS 1.3: a resumed handshake spares the signature, 1 ms, and a tenth of 300 us.
    check("resumption-refused", 2.06, refused);
}

#[test]
fn before_tls_1_3_a_resumed_handshake_spares_the_key_exchange_and_much_of_the_rest() {
    let mut facts = of_fixture("openssl30-tls12-session-id-refused").unwrap();
    facts.forget_sessions(true);
    let kept = ledger(100, |ledger| {
        let one = Handshake {
            hello: Some(facts.clone()),
            version: "TLS1.2",
            ..handshake("x25519", "rsa_2048", [100, 1000])
        };
        ledger.record(SERVICE, &one);
    });
    let finding = find(kept, 1.0, "resumption-refused").unwrap();
    // 1.1 ms, and 45% of 200 us.
    assert!((likely_seconds(&finding) - 0.119).abs() < 1e-9);
}

#[test]
fn resumption_refused_takes_resumed_handshakes_where_there_are_some() {
    let mut kept = refused(100);
    for _ in 0..20 {
        let one = Handshake {
            resumption: Resumption::Psk,
            ..handshake("x25519", "none", [100, 0])
        };
        kept.record(SERVICE, &one);
    }
    let finding = find(kept, 1.0, "resumption-refused").unwrap();
    // 1,300 us less 300 us.
    assert!((likely_seconds(&finding) - 0.1).abs() < 1e-9);
    let method = &finding.prediction.saving().unwrap().method;
    assert!(method.contains("- resumed handshake"), "{method}");
}

#[test]
fn accepted_sessions_are_no_finding() {
    let facts = of_fixture("openssl30-tls13-psk-resumed");
    let kept = ledger(1000, |ledger| {
        let one = Handshake {
            hello: facts.clone(),
            resumption: Resumption::Psk,
            ..handshake("x25519", "none", [100, 0])
        };
        ledger.record(SERVICE, &one);
    });
    assert_eq!(find(kept.clone(), 0.4, "resumption-refused"), None);
    assert_eq!(find(kept, 0.4, "resumption-not-offered"), None);
}

fn not_offered(number: u64, role: Role) -> Ledger {
    let facts = of_fixture("openssl35-tls13-full");
    ledger(number, |ledger| {
        let one = Handshake {
            hello: facts.clone(),
            role,
            ..handshake("x25519", "rsa_2048", [100, 1000])
        };
        ledger.record(SERVICE, &one);
    })
}

#[test]
fn resumption_not_offered_at_its_thresholds_and_as_an_upper_bound() {
    for role in [Role::Server, Role::Client] {
        check("resumption-not-offered", 2.06, |n| not_offered(n, role));
        let finding = find(not_offered(100, role), 1.0, "resumption-not-offered").unwrap();
        assert!(matches!(finding.prediction, Prediction::AtMost(..)));
        assert_eq!(finding.role, role);
    }
}

#[test]
fn resumption_not_offered_is_silent_if_a_tenth_resumes() {
    let mut kept = not_offered(ENOUGH, Role::Server);
    let facts = of_fixture("openssl30-tls13-psk-resumed");
    let resumed = Handshake {
        hello: facts,
        resumption: Resumption::Psk,
        ..handshake("x25519", "none", [100, 0])
    };
    for _ in 0..11 {
        kept.record(SERVICE, &resumed);
    }
    assert!(find(kept.clone(), 0.5, "resumption-not-offered").is_some());
    kept.record(SERVICE, &resumed);
    assert_eq!(find(kept, 0.5, "resumption-not-offered"), None);
}

#[test]
fn post_quantum_cost_is_told_at_any_share_but_not_of_few() {
    let of = |n| {
        let mut kept = ledger(n, |ledger| {
            ledger.record(
                SERVICE,
                &handshake("X25519MLKEM768", "rsa_2048", [180, 900]),
            );
        });
        with_x25519(&mut kept);
        kept
    };
    assert_eq!(find(of(ENOUGH - 1), 1.0, "post-quantum-cost"), None);
    let finding = find(of(ENOUGH), 1000.0, "post-quantum-cost").unwrap();
    assert_eq!(finding.severity, Severity::Info);
    assert!((likely_seconds(&finding) - 100.0 * 80e-6).abs() < 1e-9);
}

/// Samples of the hybrid group miss so much that X25519 alone costs more elsewhere.
#[test]
fn post_quantum_cost_of_a_part_of_the_exchange_is_unknown() {
    let of = |alone: u64| {
        let mut kept = ledger(0, |_| {});
        kept.set_sampling(Sampling::Every(Duration::from_micros(100)));
        let closed = Handshake {
            steps: None,
            ..handshake("X25519MLKEM768", "rsa_2048", [180, 900])
        };
        (0..ENOUGH).for_each(|_| kept.record(SERVICE, &closed));
        for _ in 0..20 {
            kept.record("other", &handshake("x25519", "rsa_2048", [alone, 900]));
        }
        kept.add_samples(SERVICE, Activity::Handshake, Mode::User, 1000);
        kept.add_cpu(SERVICE, Duration::from_millis(100), Duration::ZERO);
        let computed = [(Primitive::MlKem, 100), (Primitive::RsaDh, 900)];
        let counts =
            computed.map(|(one, count)| ((Activity::Handshake, one, Evidence::Name, None), count));
        kept.note_primitives(SERVICE, &counts.into());
        find(kept, 1.0, "post-quantum-cost").unwrap()
    };
    // 0.1 ms in each handshake.
    let finding = of(60);
    assert!(!is_unknown(&finding), "{finding:?}");
    assert!((likely_seconds(&finding) - 100.0 * 40e-6).abs() < 1e-9);
    assert!(is_unknown(&of(110)));
}

#[test]
fn failed_handshakes_have_no_group_to_complain_of() {
    let kept = ledger(1000, |ledger| {
        let one = Handshake {
            outcome: Outcome::Failed,
            ..p384(&[P384, X25519])
        };
        ledger.record(SERVICE, &one);
    });
    assert_eq!(find(kept, 1.0, "slow-key-exchange"), None);
}

#[test]
fn a_calibration_fills_in_and_is_named() {
    let cost = |likely: f64| Range::around(likely, likely * 0.02);
    let calibration = Calibration::from([
        (Operation::KeyExchange("secp384r1"), cost(1.2e-3)),
        (Operation::KeyExchange("x25519"), cost(0.1e-3)),
    ]);
    let kept = ledger(100, |ledger| ledger.record(SERVICE, &p384(&[P384, X25519])));
    let found = found(kept, 1.0, calibration);
    let finding = found
        .iter()
        .find(|one| one.kind.label == "slow-key-exchange")
        .unwrap();
    let saving = finding.prediction.saving().unwrap();
    assert_eq!(saving.source, CostSource::Calibration);
    // 1.1 ms in the service, less 0.1 ms; the calibrated difference is in the range.
    assert!((saving.cpu.likely - 0.1).abs() < 1e-9);
    assert!(saving.cpu.high >= 0.11 && saving.cpu.low < 0.1);
}
