//! What operations cost by CPU samples, where no probe measures them.

use tlsprof_common::{Resumption, Role, Step};
use tlsprof_ledger::{HandshakeKey, ServiceAccount, StepSet};

use super::{Operation, Range};

/// So many samples make a cost: a standard error of 15%.
const SAMPLES: u64 = 40;
/// So many of the handshakes that do such an operation must do this one: samples do not tell them apart.
const NEARLY_ALL: f64 = 0.95;

/// Seconds of an operation in the handshakes of a service that is only a server. None where samples
/// cannot separate its step from others, or its handshakes do different ones.
pub(super) fn cost(account: &ServiceAccount, operation: Operation) -> Option<Range> {
    let full = |key: &HandshakeKey| key.resumption == Resumption::None;
    let (step, handshakes) = match operation {
        Operation::KeyExchange(group) => {
            let number = nearly_all(account, |key| key.group != "none", |key| key.group == group);
            (Step::KeyExchange, number?)
        }
        Operation::Signing(kind) => {
            let number = nearly_all(account, full, |key| key.signature == kind);
            (Step::Signing, number?)
        }
        Operation::Encryption(..) => return None,
    };
    let steps = account.sampled_steps();
    let alone = steps.iter().find(|one| one.steps == StepSet::of(step))?;
    let all: f64 = steps.iter().map(|one| one.cpu.as_secs_f64()).sum();
    let shared = steps.iter().filter(|one| one.steps != alone.steps);
    let shared = shared.filter(|one| one.steps.has(step));
    let shared: f64 = shared.map(|one| one.cpu.as_secs_f64()).sum();
    let likely = alone.cpu.as_secs_f64();
    if alone.samples < SAMPLES || shared > likely {
        return None;
    }
    let range = Range {
        low: alone.limits.low * all,
        likely,
        high: alone.limits.high * all + shared,
    };
    Some(range.map(|seconds| seconds / handshakes))
}

/// How many handshakes are of a kind, if that is nearly all of those that might be. Failed ones are in
/// the samples too.
fn nearly_all(
    account: &ServiceAccount,
    might: impl Fn(&HandshakeKey) -> bool,
    is: impl Fn(&HandshakeKey) -> bool,
) -> Option<f64> {
    let (mut all, mut those) = (0, 0);
    for (key, sum) in &account.handshakes {
        if key.role == Role::Client {
            return None;
        }
        if might(key) {
            all += sum.count;
            those += if is(key) { sum.count } else { 0 };
        }
    }
    let (all, those) = (all as f64, those as f64);
    (those > 0.0 && those >= NEARLY_ALL * all).then_some(those)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::time::Duration;

    use tlsprof_evidence::Handshake;
    use tlsprof_evidence::activity::{Activity, Mode};
    use tlsprof_evidence::primitive::{Evidence, Primitive};
    use tlsprof_evidence::sample::handshake;
    use tlsprof_ledger::{Ledger, Sampling};

    use super::*;
    use crate::costs::in_words;

    const EXCHANGE: Operation = Operation::KeyExchange("x25519");

    /// Ten handshakes of a closed server, and 100 samples of 10 ms in them.
    fn ledger(more: &[Handshake], computed: &[(Primitive, u64)]) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.set_sampling(Sampling::Every(Duration::from_millis(10)));
        let closed = Handshake {
            steps: None,
            ..handshake()
        };
        let handshakes = std::iter::repeat_n(&closed, 10).chain(more);
        handshakes.for_each(|one| ledger.record("closed", one));
        let (activity, all) = (Activity::Handshake, computed.iter().map(|(_, n)| n).sum());
        ledger.add_samples("closed", activity, Mode::User, all);
        ledger.add_cpu("closed", Duration::from_millis(10 * all), Duration::ZERO);
        let counts = computed.iter();
        let counts = counts.map(|&(one, count)| ((activity, one, Evidence::Name, None), count));
        ledger.note_primitives("closed", &counts.collect());
        ledger
    }

    fn cost_in(ledger: &Ledger, operation: Operation) -> Option<Range> {
        cost(ledger.service("closed").unwrap(), operation)
    }

    #[test]
    fn a_step_of_its_own_is_divided_among_its_handshakes() {
        let ledger = ledger(&[], &[(Primitive::Curve25519, 50), (Primitive::RsaDh, 150)]);
        let found = cost_in(&ledger, EXCHANGE).unwrap();
        assert!((found.likely - 0.05).abs() < 1e-9);
        assert!(found.low < 0.05 && 0.05 < found.high);
        let found = cost_in(&ledger, Operation::Signing("rsa_2048")).unwrap();
        assert!((found.likely - 0.15).abs() < 1e-9);
        assert!(cost_in(&ledger, Operation::KeyExchange("secp256r1")).is_none());
    }

    #[test]
    fn a_cost_from_samples_says_so() {
        let ledger = ledger(&[], &[(Primitive::Curve25519, 50), (Primitive::RsaDh, 150)]);
        let words = in_words(ledger.service("closed").unwrap(), EXCHANGE);
        let expected = "at least 50.0 ms of CPU per handshake (from samples)";
        assert_eq!(words.as_deref(), Some(expected));
    }

    #[test]
    fn few_samples_and_other_handshakes_have_no_cost() {
        let few = ledger(&[], &[(Primitive::Curve25519, 39), (Primitive::RsaDh, 150)]);
        assert_eq!(cost_in(&few, EXCHANGE), None);
        let enough = [(Primitive::Curve25519, 50), (Primitive::RsaDh, 150)];
        let other = Handshake {
            group: "secp256r1",
            ..handshake()
        };
        assert_eq!(cost_in(&ledger(&[other], &enough), EXCHANGE), None);
        let client = Handshake {
            role: Role::Client,
            ..handshake()
        };
        assert_eq!(cost_in(&ledger(&[client], &enough), EXCHANGE), None);
    }

    #[test]
    fn what_two_steps_share_widens_the_range_or_hides_the_cost() {
        let some = [
            (Primitive::Curve25519, 50),
            (Primitive::RsaDh, 150),
            (Primitive::PublicKey, 20),
        ];
        let found = cost_in(&ledger(&[], &some), EXCHANGE).unwrap();
        assert!(found.high > 0.07, "{found:?}");
        let most = [(Primitive::Curve25519, 50), (Primitive::PublicKey, 60)];
        assert_eq!(cost_in(&ledger(&[], &most), EXCHANGE), None);
    }
}
