//! Time and samples that are not joined yet, and how a time is divided.

use std::collections::BTreeMap;
use std::time::Duration;

use super::time::{Accounted, Key, nanos};

/// Time that stands for so many samples had some, but for one case in 500 million
/// (`e^-20`): without any, sampling failed.
const MANY: u32 = 20;
/// Samples may be this much later than the CPU time that they speak for, where the
/// agent itself was kept from running.
const PATIENCE: Duration = Duration::from_secs(10);

/// CPU time that has no samples yet, or samples that have no CPU time yet: the
/// kernel shows CPU time of live processes in steps of 10 ms.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    pub cpu: Accounted,
    pub samples: BTreeMap<Key, u64>,
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

    /// Whether its CPU time should have had samples long ago.
    pub(crate) fn is_hopeless(&self, now: Duration, period: Duration) -> bool {
        let waited = now.saturating_sub(self.since);
        // Where samples are taken in windows, each stands for much of the time in between.
        let patience = PATIENCE.max(period.saturating_mul(MANY));
        waited > patience && self.stands_for_many(period)
    }

    /// Whether its CPU time stands for so many samples that one must have come.
    pub(crate) fn stands_for_many(&self, period: Duration) -> bool {
        nanos(self.cpu.total()) > nanos(period).saturating_mul(MANY.into())
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
