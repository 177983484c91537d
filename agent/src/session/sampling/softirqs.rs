//! Kernel work for the network outside of any process, divided among the services that
//! own the connections.

use std::collections::BTreeMap;

use crate::evidence::activity::{Activity, Verdict};
use crate::ledger::NetworkEvents;

/// Divisions, about one a second, that samples wait for events.
const MOST_WAITED: u32 = 60;

/// Samples of softirqs that hit no thread of a profiled service, or whose time no thread
/// is charged with, until they are divided.
///
/// The packet that a softirq was at work on is not known. So opening is divided by the
/// connections that were opened meanwhile, closing by those that ended, sending and
/// receiving by the payload of those that ended; what is neither stays out. What cannot
/// be divided yet waits for a minute: later events were not what it was for. Docs: accounting.md, "Whose work".
#[derive(Debug, Default)]
pub(super) struct Softirqs {
    waiting: BTreeMap<Activity, u64>,
    /// For how many divisions.
    waited: BTreeMap<Activity, u32>,
    /// How many events were accounted for: of each service, and of the rest of the host.
    seen: BTreeMap<Activity, BTreeMap<Option<String>, u64>>,
}

impl Softirqs {
    /// Softirqs for timers, block devices and the kernel's own upkeep are nobody's.
    pub(super) fn add(&mut self, verdict: Verdict, count: u64) {
        let activity = verdict.activity;
        if weight(activity, NetworkEvents::default()).is_some() {
            let waiting = self.waiting.entry(activity).or_default();
            *waiting = waiting.saturating_add(count);
        }
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> impl Iterator<Item = (Activity, u64)> {
        self.waiting
            .iter()
            .map(|(activity, count)| (*activity, *count))
    }

    /// Divides what waits by the events of each service since the last division;
    /// `services` has all events so far, None for services that are not profiled.
    pub(super) fn divide(
        &mut self,
        services: &BTreeMap<Option<String>, NetworkEvents>,
    ) -> Vec<(String, Activity, u64)> {
        let mut shares = Vec::new();
        for (&activity, waiting) in &mut self.waiting {
            let seen = self.seen.entry(activity).or_default();
            let new: BTreeMap<_, _> = services
                .iter()
                .map(|(name, events)| {
                    let before = seen.get(name).copied().unwrap_or_default();
                    let now = weight(activity, *events).unwrap_or_default();
                    (name, now.saturating_sub(before))
                })
                .collect();
            let total: u64 = new.values().fold(0, |sum, one| sum.saturating_add(*one));
            let waited = self.waited.entry(activity).or_default();
            if total == 0 || *waiting == 0 {
                *waited += 1;
                if *waited > MOST_WAITED {
                    (*waiting, *waited) = (0, 0);
                }
                continue;
            }
            *waited = 0;
            let mut left = *waiting;
            for (name, events) in new {
                let share = u128::from(*waiting) * u128::from(events) / u128::from(total);
                let share = u64::try_from(share).unwrap_or(*waiting);
                left = left.saturating_sub(share);
                if let (Some(name), 1..) = (name, share) {
                    shares.push((name.clone(), activity, share));
                }
            }
            // Less than one sample a service: it waits with the next ones.
            *waiting = left;
            *seen = services
                .iter()
                .map(|(name, events)| (name.clone(), weight(activity, *events).unwrap_or(0)))
                .collect();
        }
        shares
    }
}

/// The events that an activity's work is for.
const fn weight(activity: Activity, events: NetworkEvents) -> Option<u64> {
    match activity {
        Activity::TcpOpen => Some(events.opened),
        Activity::TcpClose => Some(events.closed),
        Activity::SocketIo => Some(events.bytes),
        Activity::Handshake | Activity::Encryption | Activity::Application => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::activity::{Basis, Mode};

    fn network(activity: Activity) -> Verdict {
        Verdict {
            activity,
            mode: Mode::Softirq,
            basis: Basis::KernelFunction,
            traced: false,
            upkeep: None,
        }
    }

    fn events(opened: u64, closed: u64, bytes: u64) -> NetworkEvents {
        NetworkEvents {
            opened,
            closed,
            bytes,
        }
    }

    fn host(all: [(&str, NetworkEvents); 3]) -> BTreeMap<Option<String>, NetworkEvents> {
        let name = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        all.into_iter().map(|(n, e)| (name(n), e)).collect()
    }

    #[test]
    fn each_activity_is_divided_by_its_own_events() {
        let mut softirqs = Softirqs::default();
        softirqs.add(network(Activity::TcpOpen), 10);
        softirqs.add(network(Activity::TcpClose), 10);
        softirqs.add(network(Activity::SocketIo), 10);
        let shares = softirqs.divide(&host([
            ("", events(0, 0, 0)),
            ("a", events(3, 1, 500)),
            ("b", events(1, 1, 500)),
        ]));
        let expected = [
            ("a", Activity::TcpOpen, 7),
            ("b", Activity::TcpOpen, 2),
            ("a", Activity::TcpClose, 5),
            ("b", Activity::TcpClose, 5),
            ("a", Activity::SocketIo, 5),
            ("b", Activity::SocketIo, 5),
        ];
        assert_eq!(
            shares,
            expected.map(|(name, activity, count)| (name.to_owned(), activity, count))
        );
    }

    #[test]
    fn what_cannot_be_divided_waits_and_nothing_is_counted_twice() {
        let mut softirqs = Softirqs::default();
        let idle = host([
            ("", events(0, 0, 0)),
            ("a", events(0, 0, 0)),
            ("b", events(0, 0, 0)),
        ]);
        softirqs.add(network(Activity::TcpClose), 4);
        assert_eq!(softirqs.divide(&idle), []);
        let busy = host([
            ("", events(0, 0, 0)),
            ("a", events(0, 1, 0)),
            ("b", events(0, 0, 0)),
        ]);
        assert_eq!(
            softirqs.divide(&busy),
            [("a".to_owned(), Activity::TcpClose, 4)]
        );
        softirqs.add(network(Activity::TcpClose), 4);
        assert_eq!(softirqs.divide(&busy), [], "no event since");
    }

    #[test]
    fn what_waited_long_is_nobodys() {
        let idle = host([
            ("", events(0, 0, 0)),
            ("a", events(0, 0, 0)),
            ("b", events(0, 0, 0)),
        ]);
        let busy = host([
            ("", events(0, 0, 0)),
            ("a", events(1, 0, 0)),
            ("b", events(0, 0, 0)),
        ]);
        for (divisions, expected) in [(MOST_WAITED, 1), (MOST_WAITED + 1, 0)] {
            let mut softirqs = Softirqs::default();
            softirqs.add(network(Activity::TcpOpen), 100);
            for _ in 0..divisions {
                assert_eq!(softirqs.divide(&idle), []);
            }
            assert_eq!(softirqs.divide(&busy).len(), expected);
        }
    }

    #[test]
    fn the_work_of_services_that_are_not_profiled_is_not_given_to_others() {
        let mut softirqs = Softirqs::default();
        softirqs.add(network(Activity::TcpOpen), 100);
        let shares = softirqs.divide(&host([
            ("", events(9, 0, 0)),
            ("a", events(1, 0, 0)),
            ("b", events(0, 0, 0)),
        ]));
        assert_eq!(shares, [("a".to_owned(), Activity::TcpOpen, 10)]);
    }

    #[test]
    fn work_that_belongs_to_no_connection_stays_out() {
        let mut softirqs = Softirqs::default();
        softirqs.add(network(Activity::Application), 100);
        let all = events(1, 1, 1);
        assert_eq!(
            softirqs.divide(&host([("", all), ("a", all), ("b", all)])),
            []
        );
    }
}
