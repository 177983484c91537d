//! Divides samples among services by their events. Pure.

use std::collections::BTreeMap;

/// A service by name; None stands for all that are not profiled.
pub(super) type Name = Option<String>;

/// Fractions of samples that each service is still to get. Without these a service whose
/// part is always less than one sample would get none.
#[derive(Clone, Debug, Default)]
pub(super) struct Remainders(BTreeMap<Name, f64>);

/// A millionth of a sample: sums of parts are off by less.
const ROUNDING: f64 = 1e-6;

impl Remainders {
    /// Divides so many samples in proportion to the events of each service, and returns
    /// the whole ones; None without events. Services that `events` does not name lose
    /// their remainder.
    #[allow(clippy::cast_precision_loss, reason = "shares, samples of a minute")]
    pub(super) fn allocate(
        &mut self,
        samples: u64,
        events: &BTreeMap<Name, u64>,
    ) -> Option<Vec<(Name, u64)>> {
        let all: f64 = events.values().map(|count| *count as f64).sum();
        if all <= 0.0 {
            return None;
        }
        self.0.retain(|name, _| events.contains_key(name));
        let part = |(name, count): (&Name, &u64)| {
            let remainder = self.0.entry(name.clone()).or_default();
            *remainder += samples as f64 * (*count as f64 / all);
            (name.clone(), take_whole(remainder))
        };
        Some(events.iter().map(part).collect())
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole, and not negative"
)]
fn take_whole(remainder: &mut f64) -> u64 {
    let whole = (*remainder + ROUNDING).floor().max(0.0);
    *remainder -= whole;
    whole as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop")]

    use super::*;

    fn by_name<const N: usize>(all: [(&str, u64); N]) -> BTreeMap<Name, u64> {
        let name = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        all.into_iter().map(|(n, count)| (name(n), count)).collect()
    }

    #[test]
    fn events_decide() {
        let events = by_name([("", 5), ("a", 4), ("b", 1)]);
        let parts = Remainders::default().allocate(100, &events).unwrap();
        let parts: BTreeMap<Name, u64> = parts.into_iter().collect();
        assert_eq!(parts, by_name([("", 50), ("a", 40), ("b", 10)]));
    }

    #[test]
    fn nothing_is_divided_without_events() {
        let events = by_name([("", 0), ("a", 0)]);
        assert_eq!(Remainders::default().allocate(100, &events), None);
    }

    #[test]
    fn small_parts_add_up_to_samples() {
        let events = by_name([("", 0), ("a", 97), ("b", 3)]);
        let mut remainders = Remainders::default();
        let mut sums: BTreeMap<Name, u64> = BTreeMap::new();
        for _ in 0..100 {
            for (service, samples) in remainders.allocate(1, &events).unwrap() {
                *sums.entry(service).or_default() += samples;
            }
        }
        assert_eq!(sums, events);
    }

    proptest::proptest! {
        /// No sample is made, and at most one for each service is held back.
        #[test]
        fn parts_add_up_to_the_whole(
            [others, a, b]: [u32; 3], samples in proptest::collection::vec(0_u64..10_000, 1..20)
        ) {
            let events = by_name([("", others.into()), ("a", a.into()), ("b", b.into())]);
            let mut remainders = Remainders::default();
            let parts = samples.iter().filter_map(|count| remainders.allocate(*count, &events));
            let booked: u64 = parts.flatten().map(|(_, samples)| samples).sum();
            let all: u64 = samples.iter().sum();
            let divided = others > 0 || a > 0 || b > 0;
            proptest::prop_assert!(!divided || booked <= all && all - booked <= 3, "{booked} of {all}");
        }
    }
}
