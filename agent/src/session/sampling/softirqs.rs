//! Kernel work for the network outside of any process, divided among the services that
//! own the connections.

use std::collections::BTreeMap;

use tlsprof_evidence::activity::{Activity, Packets, Verdict};
use tlsprof_ledger::NetworkEvents;

use super::division::{Name, Remainders};

/// Divisions, about one a second, that samples wait for events.
const MOST_WAITED: u32 = 60;

/// Samples of softirqs that hit no thread of a profiled service, or whose time no thread
/// is charged with, until they are divided.
///
/// The packet that a softirq was at work on is not known. So its samples are divided by
/// events: opening by the connections that were opened, closing by those that ended,
/// sending and receiving by the payload of those that ended. What is none of the three
/// stays out. Of work on packets whose protocol does not show yet, as much is TCP's as of
/// the rest. What cannot be divided yet waits for a minute: later events were not what it
/// was for. Docs: accounting.md, "Whose work".
#[derive(Debug, Default)]
pub(super) struct Softirqs {
    waiting: BTreeMap<Activity, u64>,
    passed: Passed,
    /// For how many divisions.
    waited: BTreeMap<Activity, u32>,
    /// How many events were accounted for: of each service, and of the rest of the host.
    seen: BTreeMap<Activity, BTreeMap<Name, u64>>,
    remainders: BTreeMap<Activity, Remainders>,
}

/// Samples of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub service: String,
    pub activity: Activity,
    pub samples: u64,
}

/// Samples of work on packets since the last division.
#[derive(Debug, Default)]
struct Passed {
    /// Before it shows what they are.
    any: u64,
    /// For connections of TCP.
    tcp: u64,
    /// For another protocol, or another host.
    other: u64,
}

impl Passed {
    fn add(&mut self, verdict: Verdict, count: u64) {
        let is_tcp = weight(verdict.activity, NetworkEvents::default()).is_some();
        let kind = match verdict.packets {
            Some(Packets::Any) => &mut self.any,
            Some(Packets::NotTcp) => &mut self.other,
            None if is_tcp => &mut self.tcp,
            None => return,
        };
        *kind = kind.saturating_add(count);
    }

    /// What of `any` is TCP's: all where nothing else shows it.
    fn tcp_of_any(&self) -> u64 {
        let known = u128::from(self.tcp) + u128::from(self.other);
        let share = (u128::from(self.any) * u128::from(self.tcp)).checked_div(known);
        share.map_or(self.any, |share| u64::try_from(share).unwrap_or(self.any))
    }
}

impl Softirqs {
    /// Softirqs for timers, block devices and the kernel's own upkeep are nobody's.
    pub(super) fn add(&mut self, verdict: Verdict, count: u64) {
        self.passed.add(verdict, count);
        if verdict.packets.is_some() {
            return;
        }
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
    pub(super) fn divide(&mut self, services: &BTreeMap<Name, NetworkEvents>) -> Vec<Share> {
        let passed = std::mem::take(&mut self.passed);
        let waiting = self.waiting.entry(Activity::SocketIo).or_default();
        *waiting = waiting.saturating_add(passed.tcp_of_any());
        let activities: Vec<Activity> = self.waiting.keys().copied().collect();
        let shares = activities
            .into_iter()
            .flat_map(|activity| self.divide_one(activity, services));
        shares.collect()
    }

    fn divide_one(
        &mut self,
        activity: Activity,
        services: &BTreeMap<Name, NetworkEvents>,
    ) -> Vec<Share> {
        let waiting = self.waiting.entry(activity).or_default();
        let waited = self.waited.entry(activity).or_default();
        let seen = self.seen.entry(activity).or_default();
        let new = new_events(activity, services, seen);
        let remainders = self.remainders.entry(activity).or_default();
        if *waiting == 0 {
            *waited = 0;
            return Vec::new();
        }
        let Some(parts) = remainders.allocate(*waiting, &new) else {
            *waited += 1;
            if *waited > MOST_WAITED {
                (*waiting, *waited) = (0, 0);
            }
            return Vec::new();
        };
        (*waiting, *waited) = (0, 0);
        *seen = services
            .iter()
            .map(|(name, events)| (name.clone(), weight(activity, *events).unwrap_or(0)))
            .collect();
        let whole = parts.into_iter().filter(|(_, samples)| *samples > 0);
        whole
            .filter_map(|(service, samples)| {
                Some(Share {
                    service: service?,
                    activity,
                    samples,
                })
            })
            .collect()
    }
}

/// Events of each since those that were seen.
fn new_events(
    activity: Activity,
    services: &BTreeMap<Name, NetworkEvents>,
    seen: &BTreeMap<Name, u64>,
) -> BTreeMap<Name, u64> {
    let new = services.iter().map(|(name, events)| {
        let before = seen.get(name).copied().unwrap_or_default();
        let now = weight(activity, *events).unwrap_or_default();
        (name.clone(), now.saturating_sub(before))
    });
    new.collect()
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
mod tests;
