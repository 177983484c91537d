//! Handshakes without public-key work.

use super::*;

/// A session of TLS 1.2 that is resumed.
fn abbreviated() -> Handshake {
    Handshake {
        resumption: Resumption::Ticket,
        ..with("none", "none")
    }
}

#[test]
fn abbreviated_handshakes_alone_have_steps() {
    use Primitive::{KeyDerivation, P256, Sha};
    let handshakes: Vec<Handshake> = std::iter::repeat_with(abbreviated).take(10).collect();
    let mut ledger = ledger(&handshakes, &[(KeyDerivation, 30), (Sha, 10)]);
    let account = ledger.service(SERVICE).unwrap();
    let cpu: Vec<(String, Duration)> = account
        .sampled_steps()
        .iter()
        .map(|one| (one.steps.label(), one.cpu))
        .collect();
    let expected = [("key_derivation", 300), ("other", 100)];
    let expected = expected.map(|(step, ms)| (step.to_owned(), Duration::from_millis(ms)));
    assert_eq!(cpu, expected);
    let booked = account.sampled_step_counters();
    let booked: Vec<_> = booked.map(|(steps, cpu)| (steps.label(), cpu)).collect();
    assert_eq!(
        booked.iter().map(|(_, cpu)| *cpu).sum::<Duration>(),
        Duration::from_millis(400)
    );

    // A full one books its own time, and nothing of before.
    ledger.record(SERVICE, &with("secp256r1", "rsa_2048"));
    ledger.add_samples(SERVICE, HANDSHAKE, Mode::User, 5);
    ledger.add_cpu(SERVICE, Duration::from_millis(50), Duration::ZERO);
    ledger.note_primitives(SERVICE, &[((HANDSHAKE, P256, Proof::Name, None), 5)].into());
    let account = ledger.service(SERVICE).unwrap();
    let now: BTreeMap<_, _> = account.sampled_step_counters().collect();
    assert_eq!(
        now.get(&StepSet::of(Step::KeyExchange)),
        Some(&Duration::from_millis(50))
    );
    assert_eq!(now.values().sum::<Duration>(), Duration::from_millis(450));
}
