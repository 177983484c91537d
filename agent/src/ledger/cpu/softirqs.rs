//! How samples of softirqs are divided among services.

use crate::evidence::activity::Activity;
use crate::ledger::Ledger;

use super::CpuAccount;

/// How samples of softirqs are divided among services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SoftirqDivision {
    /// They were not asked for.
    #[default]
    Off,
    /// By connections and bytes, since packets are not timed for this reason.
    Events(String),
    /// By the time of packets, as far as it is known whose they are.
    Timed(TimedPackets),
}

/// What is known of packets' time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimedPackets {
    /// Packets of TCP and expiries of its timers on this host.
    pub all: u64,
    /// Those that were timed.
    pub timed: u64,
    /// What is not timed, and why; mostly empty.
    pub missing: Vec<String>,
}

impl CpuAccount {
    /// Samples of softirqs in this activity that are the service's by the time of its
    /// packets; the rest is by events.
    pub fn timed_softirqs(&self, activity: Activity) -> u64 {
        let samples = self.timed_softirqs.get(&activity);
        samples.copied().unwrap_or_default()
    }
}

impl Ledger {
    /// Notes that so many samples of softirqs that were booked are the service's by the
    /// time of its packets.
    pub fn note_timed_softirqs(&mut self, service: &str, activity: Activity, count: u64) {
        if count == 0 {
            return;
        }
        let account = &mut self.account_mut(service).activities;
        let kept = account.timed_softirqs.entry(activity).or_default();
        *kept = kept.saturating_add(count);
    }

    /// Sets how samples of softirqs are divided.
    pub fn set_softirq_division(&mut self, division: SoftirqDivision) {
        self.softirqs = division;
    }

    /// How samples of softirqs are divided.
    pub const fn softirq_division(&self) -> &SoftirqDivision {
        &self.softirqs
    }
}
