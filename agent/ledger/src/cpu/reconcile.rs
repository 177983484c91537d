//! Time and samples that are not joined yet, and how a time is divided.

use std::collections::BTreeMap;
use std::mem;
use std::time::Duration;

use super::time::{Accounted, Key, nanos};

/// Time that stands for so many samples had some, but for one case in 500 million
/// (`e^-20`): without any, sampling failed.
const MANY: u32 = 20;
/// Samples may be this much later than the CPU time that they speak for, where the
/// agent itself was kept from running.
const PATIENCE: Duration = Duration::from_secs(10);
/// Where samples are taken in windows, three of these have passed.
const PATIENCE_IN_WINDOWS: Duration = Duration::from_secs(100);

/// CPU time that has no samples yet, or samples that have no CPU time yet: the
/// kernel shows CPU time of live processes in steps of 10 ms.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    pub cpu: Accounted,
    pub samples: BTreeMap<Key, u64>,
    last: LastWindows<Key>,
    /// When the first of that CPU time came.
    since: Duration,
}

impl Waiting {
    pub fn add_samples(&mut self, key: Key, count: u64) {
        let samples = self.samples.entry(key).or_default();
        *samples = samples.saturating_add(count);
    }

    pub fn add_cpu(&mut self, new: Accounted, now: Duration) {
        if self.cpu == Accounted::default() {
            self.since = now;
        }
        self.cpu.add(new);
    }

    pub(crate) fn has_samples(&self) -> bool {
        !self.samples.is_empty()
    }

    pub(crate) fn has_cpu(&self) -> bool {
        self.cpu != Accounted::default()
    }

    /// Whether there were samples in any window.
    pub(crate) fn has_windows(&self) -> bool {
        self.has_samples() || !self.last.is_empty()
    }

    /// Whether its CPU time should have had samples long ago.
    pub(crate) fn is_hopeless(&self, now: Duration, period: Duration) -> bool {
        self.waited_for(PATIENCE, now) && self.stands_for_many(period)
    }

    /// The same where samples are taken in windows, each of which stands for that time.
    pub(crate) fn is_hopeless_in_windows(&self, now: Duration, period: Duration) -> bool {
        self.waited_for(PATIENCE_IN_WINDOWS, now) && self.stands_for_many(period)
    }

    fn waited_for(&self, time: Duration, now: Duration) -> bool {
        now.saturating_sub(self.since) > time
    }

    /// The CPU time and the samples among which it is to be divided. Windows before these
    /// are out of date.
    pub(crate) fn take(&mut self) -> (Accounted, BTreeMap<Key, u64>) {
        self.last = LastWindows::default();
        (mem::take(&mut self.cpu), mem::take(&mut self.samples))
    }

    /// The CPU time and the samples of the last windows.
    pub(crate) fn take_in_windows(&mut self, now: Duration) -> (Accounted, BTreeMap<Key, u64>) {
        let new = mem::take(&mut self.samples);
        (mem::take(&mut self.cpu), self.last.with(&new, now))
    }

    /// Whether its CPU time stands for so many samples that one must have come.
    pub(crate) fn stands_for_many(&self, period: Duration) -> bool {
        nanos(self.cpu.total()) > nanos(period).saturating_mul(MANY.into())
    }
}

/// Samples of the last windows: all before the newest weigh half of what they did, and no more than it,
/// so that what was sampled in a busy hour does not outvote what a service does now. A window that hit a
/// pause has few samples, which say little: then those before weigh as much as some do.
#[derive(Clone, Debug)]
pub(super) struct LastWindows<K> {
    weights: BTreeMap<K, u64>,
    /// When the first samples of the newest came.
    newest: Option<Duration>,
}

impl<K> Default for LastWindows<K> {
    fn default() -> Self {
        Self {
            weights: BTreeMap::default(),
            newest: None,
        }
    }
}

impl<K: Copy + Ord> LastWindows<K> {
    /// A sample, so that parts of few are not lost.
    const ONE: u64 = 1 << 16;
    /// Samples by which a share is known to 6 points.
    const SOME: u64 = 64;
    /// Samples of one window come in two parts at most, a second apart; windows begin two seconds apart.
    const SAME: Duration = Duration::from_millis(1500);

    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// Weights after so many new samples, at a time.
    pub fn with(&mut self, new: &BTreeMap<K, u64>, now: Duration) -> BTreeMap<K, u64> {
        let is_same = self.newest.is_some_and(|then| now < then + Self::SAME);
        if !new.is_empty() && !is_same {
            self.newest = Some(now);
            self.scale_down(new.values().sum());
        }
        for (key, count) in new {
            let weight = self.weights.entry(*key).or_default();
            *weight = weight.saturating_add(count.saturating_mul(Self::ONE));
        }
        self.weights.clone()
    }

    fn scale_down(&mut self, most: u64) {
        let all: u64 = self.weights.values().sum();
        let to = (all / 2).min(most.max(Self::SOME).saturating_mul(Self::ONE));
        self.weights = shares(to, &self.weights).collect();
        self.weights.retain(|_, weight| *weight > 0);
    }
}

/// Divides `total` in proportion to `weights`, exactly: the parts add up to it, each
/// is off by less than 1, and what has no weight gets nothing.
pub(super) fn shares<K: Copy>(
    total: u64,
    weights: &BTreeMap<K, u64>,
) -> impl Iterator<Item = (K, u64)> + '_ {
    let sum: u128 = weights.values().map(|&weight| u128::from(weight)).sum();
    let (mut weight_so_far, mut given) = (0_u128, 0_u64);
    weights.iter().map(move |(&key, &weight)| {
        weight_so_far += u128::from(weight);
        // Rounds the sums, not the parts, so that no rest is left to give away.
        let until_here = u128::from(total) * weight_so_far / sum.max(1);
        let until_here = u64::try_from(until_here).unwrap_or(total);
        let part = until_here - given;
        given = until_here;
        (key, part)
    })
}
