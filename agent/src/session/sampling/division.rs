//! Divides samples among services by what is known of their connections. Pure.

use std::collections::BTreeMap;

/// A service by name; None stands for all that are not profiled.
pub(super) type Name = Option<String>;

/// Time that packets took, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Measured {
    known: BTreeMap<Name, u64>,
    unknown: u64,
}

impl Measured {
    /// Adds packets for connections of a service; `owner` is None if it is not known whose
    /// these are.
    pub(super) fn add(&mut self, owner: Option<Name>, nanos: u64) {
        let sum = match owner {
            Some(name) => self.known.entry(name).or_default(),
            None => &mut self.unknown,
        };
        *sum = sum.saturating_add(nanos);
    }

    /// Of each of these; what is of none of them is of those that are not profiled.
    fn among(&self, events: &BTreeMap<Name, u64>) -> BTreeMap<Name, u64> {
        let mut among: BTreeMap<Name, u64> = events.keys().map(|name| (name.clone(), 0)).collect();
        for (name, nanos) in &self.known {
            let name = events.get_key_value(name).map_or(&None, |(name, _)| name);
            let sum = among.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*nanos);
        }
        among
    }
}

/// The part of one service.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Part {
    /// Of all, 0 to 1.
    pub share: f64,
    /// What of `share` is by time, 0 to 1; the rest is by events.
    pub timed: f64,
}

/// The parts of services, which add up to 1; None where nothing tells. `events` names the
/// services, and says how many events each had.
///
/// The time of packets decides. That of packets whose owner is not known is divided by
/// the events, and where no time is known, all is.
#[allow(clippy::cast_precision_loss, reason = "shares")]
pub(super) fn parts(
    measured: &Measured,
    events: &BTreeMap<Name, u64>,
) -> Option<BTreeMap<Name, Part>> {
    let known = measured.among(events);
    let timed: f64 = known.values().map(|nanos| *nanos as f64).sum();
    let all_events: f64 = events.values().map(|count| *count as f64).sum();
    let unknown = match (timed > 0.0, all_events > 0.0) {
        (false, false) => return None,
        (true, false) => 0.0,
        (true, true) => measured.unknown as f64,
        (false, true) => 1.0,
    };
    let part = |(name, nanos): (Name, u64)| {
        let events = events.get(&name).copied().unwrap_or_default() as f64;
        let by_time = nanos as f64;
        let by_events = unknown * events / all_events.max(1.0);
        let both = by_time + by_events;
        let part = Part {
            share: both / (timed + unknown),
            timed: if both > 0.0 { by_time / both } else { 0.0 },
        };
        (name, part)
    };
    Some(known.into_iter().map(part).collect())
}

/// Parts of samples that are not whole ones yet, by service. Without these a service that
/// never has as much as one sample at a time would get none.
#[derive(Clone, Debug, Default)]
pub(super) struct Owed(BTreeMap<Name, Debt>);

#[derive(Clone, Copy, Debug, Default)]
struct Debt {
    samples: f64,
    /// Of these, by time.
    timed: f64,
}

/// A millionth of a sample: sums of parts are off by less.
const ROUNDING: f64 = 1e-6;

impl Owed {
    /// Adds each service's part of so many samples, and takes the whole ones: how many, and
    /// how many of them by time. Nobody is owed anything who is not in `parts`.
    #[allow(clippy::cast_precision_loss, reason = "samples of a minute")]
    pub(super) fn pay(&mut self, samples: u64, parts: &BTreeMap<Name, Part>) -> Vec<Paid> {
        self.0.retain(|name, _| parts.contains_key(name));
        let mut all = Vec::new();
        for (name, part) in parts {
            let debt = self.0.entry(name.clone()).or_default();
            let new = samples as f64 * part.share;
            debt.samples += new;
            debt.timed += new * part.timed;
            let paid = Paid {
                service: name.clone(),
                samples: whole(&mut debt.samples),
                timed: 0,
            };
            let timed = whole(&mut debt.timed).min(paid.samples);
            all.push(Paid { timed, ..paid });
        }
        all
    }
}

/// Whole samples of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Paid {
    pub service: Name,
    pub samples: u64,
    pub timed: u64,
}

/// Takes what is whole of it.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole, and not negative"
)]
fn whole(debt: &mut f64) -> u64 {
    let whole = (*debt + ROUNDING).floor().max(0.0);
    *debt -= whole;
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

    fn measured<const N: usize>(known: [(&str, u64); N], unknown: u64) -> Measured {
        let known = by_name(known);
        Measured { known, unknown }
    }

    fn of(parts: &BTreeMap<Name, Part>, name: &str) -> (f64, f64) {
        let name = (!name.is_empty()).then(|| name.to_owned());
        let part = parts.get(&name).unwrap();
        let rounded = |of: f64| (of * 1e6).round() / 1e6;
        (rounded(part.share), rounded(part.timed))
    }

    #[test]
    fn time_decides_and_not_events() {
        let events = by_name([("", 0), ("few", 1), ("many", 999)]);
        let parts = parts(&measured([("few", 300), ("many", 100)], 0), &events).unwrap();
        assert_eq!(of(&parts, "few"), (0.75, 1.0));
        assert_eq!(of(&parts, "many"), (0.25, 1.0));
        assert_eq!(of(&parts, ""), (0.0, 0.0));
    }

    #[test]
    fn packets_of_nobody_known_go_by_events() {
        let events = by_name([("", 0), ("a", 1), ("b", 3)]);
        let parts = parts(&measured([("a", 60)], 40), &events).unwrap();
        assert_eq!(of(&parts, "a"), (0.7, 0.857_143));
        assert_eq!(of(&parts, "b"), (0.3, 0.0));
    }

    #[test]
    fn without_events_those_with_known_packets_share() {
        let events = by_name([("", 0), ("a", 0), ("b", 0)]);
        let parts_of = |measured: &Measured| parts(measured, &events);
        let found = parts_of(&measured([("a", 60), ("b", 20)], 40)).unwrap();
        assert_eq!(of(&found, "a"), (0.75, 1.0));
        assert_eq!(
            parts_of(&measured([], 40)),
            None,
            "whose they are is not known"
        );
        assert_eq!(parts_of(&measured([], 0)), None);
    }

    #[test]
    fn where_nothing_is_timed_events_decide() {
        let events = by_name([("", 5), ("a", 4), ("b", 1)]);
        for unknown in [0, 1000] {
            let parts = parts(&measured([], unknown), &events).unwrap();
            assert_eq!(of(&parts, "a"), (0.4, 0.0));
            assert_eq!(of(&parts, ""), (0.5, 0.0));
        }
    }

    #[test]
    fn services_that_are_not_booked_take_their_part_away() {
        let events = by_name([("", 0), ("a", 1)]);
        let parts = parts(&measured([("a", 10), ("gone", 20), ("", 10)], 0), &events).unwrap();
        assert_eq!(of(&parts, "a"), (0.25, 1.0));
        assert_eq!(of(&parts, ""), (0.75, 1.0));
        assert_eq!(parts.len(), 2);
    }

    #[test]
    fn small_parts_add_up_to_samples() {
        let parts = parts(
            &measured([("a", 97), ("b", 3)], 0),
            &by_name([("", 0), ("a", 0), ("b", 0)]),
        );
        let (parts, mut owed) = (parts.unwrap(), Owed::default());
        let mut sums: BTreeMap<Name, (u64, u64)> = BTreeMap::new();
        for _ in 0..100 {
            for paid in owed.pay(1, &parts) {
                let sum = sums.entry(paid.service).or_default();
                sum.0 += paid.samples;
                sum.1 += paid.timed;
            }
        }
        let sum = |name: &str| sums.get(&Some(name.to_owned())).copied().unwrap();
        assert_eq!(sum("a"), (97, 97));
        assert_eq!(sum("b"), (3, 3));
    }

    proptest::proptest! {
        /// No sample is made, and at most one for each service is held back.
        #[test]
        fn parts_add_up_to_the_whole(
            known: [u32; 3], unknown: u32, events: [u32; 3], samples in proptest::collection::vec(0_u64..10_000, 1..20)
        ) {
            let with = |[others, a, b]: [u32; 3]| {
                by_name([("", others.into()), ("a", a.into()), ("b", b.into())])
            };
            let measured = Measured { known: with(known), unknown: unknown.into() };
            if let Some(parts) = parts(&measured, &with(events)) {
                let sum: f64 = parts.values().map(|part| part.share).sum();
                proptest::prop_assert!((sum - 1.0).abs() < 1e-9, "{sum}");
                let mut owed = Owed::default();
                let paid = samples.iter().flat_map(|count| owed.pay(*count, &parts));
                let paid: u64 = paid.map(|one| one.samples).sum();
                let all: u64 = samples.iter().sum();
                proptest::prop_assert!(paid <= all && all - paid <= 3, "{paid} of {all}");
            }
        }
    }
}
