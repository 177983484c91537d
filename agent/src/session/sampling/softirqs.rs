//! Kernel work for the network outside of any process, divided among the services that
//! own the connections.

use std::collections::BTreeMap;

use crate::evidence::activity::{Activity, Packets, Verdict};
use crate::ledger::NetworkEvents;

use super::division::{Measured, Name, Owed, parts};

/// Divisions, about one a second, that samples wait for events.
const MOST_WAITED: u32 = 60;

/// Samples of softirqs that hit no thread of a profiled service, or whose time no thread
/// is charged with, until they are divided.
///
/// The packet that a softirq was at work on is not known. So its samples are divided by
/// the time that packets of each service took meanwhile, where packets are timed. Else, and
/// for packets whose owner is not known, by events: opening by the connections that were
/// opened, closing by those that ended, sending and receiving by the payload of those that
/// ended. What is none of the three stays out. Of work on packets whose protocol does not
/// show yet, as much is TCP's as of the rest. What cannot be divided yet waits for a
/// minute: later events were not what it was for. Docs: accounting.md, "Whose work".
#[derive(Debug, Default)]
pub(super) struct Softirqs {
    waiting: BTreeMap<Pool, u64>,
    passed: Passed,
    /// For how many divisions.
    waited: BTreeMap<Pool, u32>,
    /// How many events were accounted for: of each service, and of the rest of the host.
    seen: BTreeMap<Pool, BTreeMap<Name, u64>>,
    /// Since the last division.
    measured: BTreeMap<Pool, Measured>,
    owed: BTreeMap<Pool, Owed>,
}

/// Samples that are divided together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pool {
    /// Of an activity.
    Of(Activity),
    /// Of packets before it shows what they are: they are [`Activity::SocketIo`], but
    /// those that open and close pass there, too. To the driver and to IP one packet is
    /// like another, so it is their number that divides these, where it is known.
    Passing,
}

impl Pool {
    const fn activity(self) -> Activity {
        match self {
            Self::Of(activity) => activity,
            Self::Passing => Activity::SocketIo,
        }
    }
}

/// Samples of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub service: String,
    pub activity: Activity,
    pub samples: u64,
    /// Those of them that are its by the time of its packets, and not by events.
    pub timed: u64,
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

    /// What of `any` is TCP's: all where nothing tells.
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
            let waiting = self.waiting.entry(Pool::Of(activity)).or_default();
            *waiting = waiting.saturating_add(count);
        }
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> impl Iterator<Item = (Activity, u64)> {
        self.waiting
            .iter()
            .map(|(pool, count)| (pool.activity(), *count))
    }

    /// Adds so many packets for connections of a service, and their time; `owner` is None
    /// if it is not known whose these are.
    pub(super) fn measure(
        &mut self,
        activity: Activity,
        owner: Option<Name>,
        count: u64,
        nanos: u64,
    ) {
        let passing = self.measured.entry(Pool::Passing).or_default();
        passing.add(owner.clone(), count);
        let measured = self.measured.entry(Pool::Of(activity)).or_default();
        measured.add(owner, nanos);
    }

    /// Divides what waits by what was measured, and by the events of each service, since
    /// the last division; `services` has all events so far, None for services that are not
    /// profiled.
    pub(super) fn divide(&mut self, services: &BTreeMap<Name, NetworkEvents>) -> Vec<Share> {
        let passed = std::mem::take(&mut self.passed);
        let waiting = self.waiting.entry(Pool::Passing).or_default();
        *waiting = waiting.saturating_add(passed.tcp_of_any());
        let pools: Vec<Pool> = self.waiting.keys().copied().collect();
        let shares = pools
            .into_iter()
            .flat_map(|pool| self.divide_one(pool, services));
        shares.collect()
    }

    fn divide_one(&mut self, pool: Pool, services: &BTreeMap<Name, NetworkEvents>) -> Vec<Share> {
        let waiting = self.waiting.entry(pool).or_default();
        let waited = self.waited.entry(pool).or_default();
        let measured = self.measured.entry(pool).or_default();
        let seen = self.seen.entry(pool).or_default();
        let new = new_events(pool.activity(), services, seen);
        let parts = parts(measured, &new).filter(|_| *waiting > 0);
        let Some(parts) = parts else {
            *waited += 1;
            if *waited > MOST_WAITED {
                (*waiting, *waited) = (0, 0);
            }
            return Vec::new();
        };
        *waited = 0;
        *measured = Measured::default();
        *seen = services
            .iter()
            .map(|(name, events)| (name.clone(), weight(pool.activity(), *events).unwrap_or(0)))
            .collect();
        let owed = self.owed.entry(pool).or_default();
        let paid = owed.pay(std::mem::take(waiting), &parts).into_iter();
        paid.filter_map(|paid| {
            Some(Share {
                service: paid.service.filter(|_| paid.samples > 0)?,
                activity: pool.activity(),
                samples: paid.samples,
                timed: paid.timed,
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
