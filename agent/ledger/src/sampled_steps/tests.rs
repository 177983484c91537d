//! Which steps samples count for, by what was negotiated.
#![allow(clippy::unwrap_used, reason = "tests")]

mod abbreviated;
mod curves;

use proptest::prelude::*;
use tlsprof_common::{Outcome, Resumption, Role};
use tlsprof_evidence::activity::Mode;
use tlsprof_evidence::primitive::Evidence as Proof;
use tlsprof_evidence::sample::handshake;

use super::*;
use crate::Ledger;

const SERVICE: &str = "nginx.service";
const HANDSHAKE: Activity = Activity::Handshake;

/// A full server handshake with a group and a kind of key.
fn with(group: &'static str, signature: &'static str) -> Handshake {
    Handshake {
        group,
        signature,
        ..handshake()
    }
}

/// One that does not sign.
fn resumed(group: &'static str) -> Handshake {
    Handshake {
        resumption: Resumption::Psk,
        ..with(group, "none")
    }
}

fn ledger(handshakes: &[Handshake], samples: &[(Primitive, u64)]) -> Ledger {
    let mut ledger = Ledger::default();
    ledger.set_sampling(crate::Sampling::Every(Duration::from_millis(10)));
    for one in handshakes {
        ledger.record(SERVICE, one);
    }
    let count = samples.iter().map(|(_, count)| count).sum();
    ledger.add_samples(SERVICE, HANDSHAKE, Mode::User, count);
    let counts = samples.iter();
    let counts = counts.map(|&(one, count)| ((HANDSHAKE, one, Proof::Name, None), count));
    ledger.add_cpu(SERVICE, Duration::from_millis(10 * count), Duration::ZERO);
    ledger.note_primitives(SERVICE, &counts.collect());
    ledger
}

/// Samples by step.
fn steps(handshakes: &[Handshake], samples: &[(Primitive, u64)]) -> BTreeMap<String, u64> {
    let ledger = ledger(handshakes, samples);
    let steps = ledger.service(SERVICE).unwrap().sampled_steps();
    let steps = steps.into_iter();
    steps.map(|one| (one.steps.label(), one.samples)).collect()
}

fn expect(handshakes: &[Handshake], samples: &[(Primitive, u64)], expected: &[(&str, u64)]) {
    let expected = expected
        .iter()
        .map(|&(step, count)| (step.to_owned(), count));
    assert_eq!(steps(handshakes, samples), expected.collect());
}

/// A generator of random numbers in a key exchange, big numbers in a signature by a curve.
#[test]
fn what_the_callers_show_comes_before_what_the_code_computes() {
    let mut ledger = ledger(&[with("x25519", "rsa_2048")], &[(Primitive::Random, 10)]);
    ledger.add_samples(SERVICE, HANDSHAKE, Mode::User, 30);
    ledger.add_cpu(SERVICE, Duration::from_millis(300), Duration::ZERO);
    let counts = [
        ((Primitive::Random, Some(Step::KeyExchange)), 10),
        ((Primitive::Kernel, Some(Step::Signing)), 20),
    ];
    let counts = counts.map(|((one, step), count)| ((HANDSHAKE, one, Proof::Name, step), count));
    ledger.note_primitives(SERVICE, &counts.into());
    let account = ledger.service(SERVICE).unwrap();
    let steps = account.sampled_steps().into_iter();
    let steps: BTreeMap<String, u64> = steps.map(|one| (one.steps.label(), one.samples)).collect();
    let expected = [("other", 10), ("key_exchange", 10), ("signing", 20)];
    assert_eq!(
        steps,
        expected
            .map(|(step, samples)| (step.to_owned(), samples))
            .into()
    );
    let random = account
        .activities
        .primitives()
        .part(HANDSHAKE, Primitive::Random);
    assert_eq!(random.samples, 20);
}

#[test]
fn each_algorithm_with_code_of_its_own_is_its_step() {
    use Primitive::{BigNumber, Curve25519, Kernel, KeyDerivation, P256, RsaDh, Sha};
    expect(
        &[with("x25519", "rsa_2048")],
        &[
            (RsaDh, 600),
            (BigNumber, 30),
            (Curve25519, 100),
            (KeyDerivation, 20),
            (Sha, 7),
            (Kernel, 3),
        ],
        &[
            ("signing", 630),
            ("key_exchange", 100),
            ("key_derivation", 20),
            ("other", 10),
        ],
    );
    expect(
        &[with("x25519", "ecdsa_p256")],
        &[(Curve25519, 200), (P256, 100), (BigNumber, 5)],
        &[("key_exchange", 200), ("signing", 105)],
    );
    expect(
        &[with("secp521r1", "rsa_4096")],
        &[
            (RsaDh, 900),
            (Primitive::P521, 400),
            (Primitive::EllipticCurve, 9),
        ],
        &[("signing", 900), ("key_exchange", 409)],
    );
}

#[test]
fn what_two_steps_compute_alike_is_theirs_together() {
    use Primitive::{EllipticCurve, P256, PublicKey};
    expect(
        &[with("secp256r1", "ecdsa_p256")],
        &[(P256, 300), (EllipticCurve, 10)],
        &[("key_exchange+signing", 310)],
    );
    expect(
        &[with("secp256r1", "rsa_2048")],
        &[(P256, 100), (PublicKey, 50)],
        &[("key_exchange", 100), ("key_exchange+signing", 50)],
    );
    let resumed = resumed("secp256r1");
    expect(&[resumed], &[(PublicKey, 50)], &[("key_exchange", 50)]);
}

#[test]
fn big_numbers_are_the_group_s_that_has_no_code_of_its_own() {
    use Primitive::{BigNumber, EllipticCurve, Multiprecision, P384, RsaDh};
    let slow = [with("secp384r1", "rsa_2048")];
    expect(
        &slow,
        &[(RsaDh, 600), (BigNumber, 800), (EllipticCurve, 30)],
        &[("signing", 600), ("key_exchange", 830)],
    );
    // Nothing shows which of them uses the same code.
    expect(&slow, &[(BigNumber, 800)], &[("key_exchange+signing", 800)]);
    expect(
        &slow,
        &[(RsaDh, 600), (BigNumber, 20), (P384, 300)],
        &[("signing", 620), ("key_exchange", 300)],
    );
    expect(
        &[with("x25519", "rsa_2048")],
        &[(Primitive::Curve25519, 9), (Multiprecision, 500)],
        &[("key_exchange", 9), ("key_exchange+signing", 500)],
    );
    expect(
        &[with("ffdhe2048", "rsa_2048")],
        &[(RsaDh, 600)],
        &[("key_exchange+signing", 600)],
    );
}

#[test]
fn hybrid_groups_exchange_keys_twice() {
    use Primitive::{Curve25519, MlKem, RsaDh, Sha3};
    expect(
        &[with("X25519MLKEM768", "rsa_2048")],
        &[(RsaDh, 600), (Curve25519, 100), (MlKem, 40), (Sha3, 30)],
        &[("signing", 600), ("key_exchange", 170)],
    );
    expect(
        &[with("x25519", "rsa_2048")],
        &[(Sha3, 30)],
        &[("other", 30)],
    );
}

#[test]
fn a_hidden_signature_is_by_what_nothing_else_explains() {
    use Primitive::{Curve25519, P256, RsaDh};
    expect(
        &[with("x25519", "unknown")],
        &[(Curve25519, 100), (RsaDh, 600)],
        &[("key_exchange", 100), ("signing", 600)],
    );
    expect(
        &[with("secp256r1", "unknown")],
        &[(P256, 300)],
        &[("key_exchange+signing", 300)],
    );
    // Two samples of something else prove nothing.
    expect(
        &[with("secp256r1", "unknown")],
        &[(P256, 300), (RsaDh, 2)],
        &[("key_exchange+signing", 300), ("other", 2)],
    );
}

#[test]
fn client_certificates_are_verified() {
    use Primitive::{Curve25519, P256, RsaDh};
    let one = Handshake {
        client_authenticates: true,
        ..with("x25519", "rsa_2048")
    };
    expect(
        &[one],
        &[(RsaDh, 600), (Curve25519, 100), (P256, 150)],
        &[
            ("signing+verification", 600),
            ("key_exchange", 100),
            ("verification", 150),
        ],
    );
}

#[test]
fn rsa_key_transport_is_decryption() {
    let one = Handshake {
        cipher: "TLS_RSA_WITH_AES_128_GCM_SHA256",
        ..with("none", "none")
    };
    expect(
        &[one],
        &[(Primitive::RsaDh, 600)],
        &[("rsa_decryption", 600)],
    );
}

#[test]
fn counters_keep_what_was_booked_when_the_mix_changes() {
    let mut ledger = ledger(&[with("x25519", "rsa_2048")], &[(Primitive::PublicKey, 10)]);
    let counters = |ledger: &Ledger| -> BTreeMap<String, Duration> {
        let counters = ledger.service(SERVICE).unwrap().sampled_step_counters();
        counters.map(|(steps, cpu)| (steps.label(), cpu)).collect()
    };
    let both = Duration::from_millis(100);
    let expected = BTreeMap::from([("key_exchange+signing".to_owned(), both)]);
    assert_eq!(counters(&ledger), expected);
    for seconds in [40, 80] {
        ledger.advance(Duration::from_secs(seconds));
        ledger.add_cpu(SERVICE, Duration::ZERO, Duration::ZERO);
        ledger.record(SERVICE, &resumed("x25519"));
    }
    ledger.add_samples(SERVICE, HANDSHAKE, Mode::User, 5);
    ledger.add_cpu(SERVICE, Duration::from_millis(50), Duration::ZERO);
    let counts = BTreeMap::from([((HANDSHAKE, Primitive::PublicKey, Proof::Name, None), 5)]);
    ledger.note_primitives(SERVICE, &counts);
    let exchange = Duration::from_millis(50);
    let more = [
        expected,
        BTreeMap::from([("key_exchange".to_owned(), exchange)]),
    ];
    assert_eq!(counters(&ledger), more.into_iter().flatten().collect());
}

#[test]
fn a_client_verifies_and_offers_other_groups() {
    use Primitive::{Curve25519, P256, RsaDh};
    let client = Handshake {
        role: Role::Client,
        ..with("secp256r1", "none")
    };
    expect(
        &[client],
        &[(Curve25519, 50), (P256, 100), (RsaDh, 40)],
        &[("key_exchange", 150), ("verification", 40)],
    );
    let failed = Handshake {
        outcome: Outcome::Failed,
        ..with("unknown", "unknown")
    };
    expect(&[failed], &[(RsaDh, 40)], &[("signing", 40)]);
}

proptest! {
    #[test]
    fn every_sample_is_in_one_step(
        counts in prop::collection::vec(0_u64..50, Primitive::ALL.len()),
        group in prop::sample::select(vec!["x25519", "secp384r1", "none", "unknown", "X25519MLKEM768"]),
        key in prop::sample::select(vec!["rsa_2048", "ecdsa_p256", "unknown", "none", "ed25519"]),
    ) {
        let samples: Vec<_> = Primitive::ALL.into_iter().zip(counts).filter(|(_, n)| *n > 0).collect();
        prop_assume!(!samples.is_empty());
        let ledger = ledger(&[with(group, key)], &samples);
        let account = ledger.service(SERVICE).unwrap();
        let all: u64 = samples.iter().map(|(_, count)| count).sum();
        let cpu = account.activities.primitives().cpu();
        let steps = account.sampled_steps();
        if steps.is_empty() {
            return Ok(());
        }
        prop_assert_eq!(steps.iter().map(|one| one.samples).sum::<u64>(), all);
        prop_assert_eq!(steps.iter().map(|one| one.cpu).sum::<Duration>(), cpu);
        let counted: Duration = account.sampled_step_counters().map(|(_, cpu)| cpu).sum();
        prop_assert_eq!(counted, cpu);
        for one in steps {
            prop_assert!(one.limits.low <= one.share && one.share <= one.limits.high + 1e-12);
        }
    }
}

/// A TLS 1.3 server whose certificate nobody sees.
fn hidden(group: &'static str, samples: &[(Primitive, u64)]) -> Option<&'static str> {
    let ledger = ledger(&[with(group, "unknown")], samples);
    ledger.service(SERVICE).unwrap().hidden_signature()
}

#[test]
fn code_that_nothing_else_explains_tells_the_kind_of_a_hidden_key() {
    use Primitive::{BigNumber, Curve25519, P256, P384, RsaDh};
    let rsa = [(RsaDh, 600), (BigNumber, 300), (Curve25519, 100)];
    assert_eq!(hidden("x25519", &rsa), Some("rsa"));
    let ecdsa = [(P256, 300), (BigNumber, 10), (Curve25519, 600)];
    assert_eq!(hidden("x25519", &ecdsa), Some("ecdsa_p256"));
    assert_eq!(
        hidden("secp256r1", &[(P256, 600), (P384, 400)]),
        Some("ecdsa_p384")
    );
    assert_eq!(
        hidden("secp256r1", &[(P256, 600), (Curve25519, 40)]),
        Some("ed25519")
    );
}

#[test]
fn a_hidden_key_is_not_guessed() {
    use Primitive::{BigNumber, Curve25519, EllipticCurve, P256, P384, PublicKey, RsaDh};
    // The group's own code may have signed, or arithmetic on big numbers for a curve, or code that is not known.
    for samples in [
        &[(P256, 600)][..],
        &[(P256, 400), (BigNumber, 500)],
        &[(P256, 400), (RsaDh, 100), (PublicKey, 200)],
        &[(P256, 400), (RsaDh, 100), (P384, 100)],
        &[(P256, 400), (EllipticCurve, 100)],
        // Too few.
        &[(P256, 400), (RsaDh, 19)],
        &[(P256, 4000), (RsaDh, 70)],
    ] {
        assert_eq!(hidden("secp256r1", samples), None, "{samples:?}");
    }
    let rsa = [(RsaDh, 600), (Curve25519, 100)];
    // A signature that is known, or none.
    for signature in ["rsa_2048", "none"] {
        let ledger = ledger(&[with("x25519", signature)], &rsa);
        assert_eq!(ledger.service(SERVICE).unwrap().hidden_signature(), None);
    }
    // It may be the clients' certificates that are verified.
    let verifies = Handshake {
        client_authenticates: true,
        ..with("x25519", "unknown")
    };
    let ledger = ledger(&[verifies], &rsa);
    assert_eq!(ledger.service(SERVICE).unwrap().hidden_signature(), None);
}
