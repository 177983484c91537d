//! Samples of the CPUs, as the kernel side counts them.

use std::collections;
use std::time::Duration;

use aya::Ebpf;
use aya::util::nr_cpus;

use super::clocks::Clocks;
use super::error::{LoadError, Unavailable};
use super::object::take_map;
use super::plain::Pod;
use super::table::Table;
use tlsprof_common::contract::{
    TLSPROF_SAMPLE_IN_PHASE, TLSPROF_STACK_DEPTH, tlsprof_sample, tlsprof_sample_key,
};

const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Samples are taken from the kernel about once a second; there is room for those of
/// more, however different they are, for an agent that was kept from running.
const SECONDS: u64 = 5;
const LEAST_ROOM: u64 = 64;

/// How to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Samples a second on each CPU; 0 for none.
    pub frequency: u32,
    /// Most different samples that the kernel keeps until they are taken.
    pub different: u32,
}

impl Sampling {
    /// Entries of the kernel's table, some 1150 bytes each.
    pub(super) fn room(self) -> u32 {
        if self.frequency == 0 {
            return 1;
        }
        let cpus = nr_cpus().map_or(1, |cpus| u64::from(cpus.get()));
        let needed = (u64::from(self.frequency) * cpus * SECONDS).max(LEAST_ROOM);
        self.different
            .min(u32::try_from(needed).unwrap_or(u32::MAX))
    }

    /// From one sample of a CPU to the next.
    pub fn period(self) -> Duration {
        Duration::from_nanos(NANOS_PER_SECOND / u64::from(self.frequency.max(1)))
    }
}

type Key = Pod<tlsprof_sample_key>;
type Sample = Pod<tlsprof_sample>;

const EMPTY: Sample = Pod(tlsprof_sample {
    count: 0,
    instruction: 0,
    length: 0,
    before: 0,
    stack_pointer: 0,
    frame_pointer: 0,
    link: 0,
    words: 0,
    first_word: 0,
    data: [0; TLSPROF_STACK_DEPTH as usize],
});

/// The samples of all CPUs.
pub struct Samples {
    table: Table<Key, Sample>,
    backdated: Table<Key, u64>,
    clocks: Clocks,
}

impl Samples {
    /// Starts the clocks of all CPUs that are on line.
    ///
    /// # Errors
    ///
    /// Why no CPU is sampled.
    pub(super) fn start(bpf: &mut Ebpf, sampling: Sampling) -> Result<Self, Unavailable> {
        if sampling.frequency == 0 {
            return Err(Unavailable::SwitchedOff("profile.sample_frequency"));
        }
        let room = sampling.room();
        Ok(Self {
            table: Table::new(take_map(bpf, "samples")?, room, EMPTY),
            backdated: Table::new(take_map(bpf, "backdated_samples")?, room, 0),
            clocks: Clocks::start(bpf, sampling.period())?,
        })
    }

    /// Keeps the clocks of all CPUs going.
    ///
    /// # Errors
    ///
    /// Why a CPU is not sampled.
    pub(super) fn follow_cpus(&mut self, bpf: &mut Ebpf) -> Result<(), LoadError> {
        self.clocks.follow_cpus(bpf)
    }

    /// Samples the CPUs at this rate from now on; None for not at all.
    ///
    /// # Errors
    ///
    /// Why a CPU is not sampled.
    pub(super) fn set_rate(
        &mut self,
        bpf: &mut Ebpf,
        rate: Option<Sampling>,
    ) -> Result<(), LoadError> {
        self.clocks.set_period(bpf, rate.map(Sampling::period))
    }

    /// Takes all samples. Those that turned out to be in a phase are counted apart.
    pub(super) fn drain(&mut self, mut take: impl FnMut(&tlsprof_sample_key, &tlsprof_sample)) {
        let mut backdated = collections::HashMap::new();
        self.backdated.drain(|Pod(key), count| {
            backdated.insert((key.place, key.pid, key.state), *count);
        });
        self.table.drain(|Pod(mut key), Pod(sample)| {
            let moved = backdated.get(&(key.place, key.pid, key.state));
            let moved = moved.copied().unwrap_or_default().min(sample.count);
            let part = |count| tlsprof_sample { count, ..*sample };
            if moved < sample.count {
                take(&key, &part(sample.count - moved));
            }
            if moved > 0 {
                key.state |= TLSPROF_SAMPLE_IN_PHASE;
                take(&key, &part(moved));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_for_some_seconds_within_the_limit() {
        let cpus = nr_cpus().map_or(1, std::num::NonZeroU32::get);
        let sampling = |frequency, different| Sampling {
            frequency,
            different,
        };
        assert_eq!(sampling(99, u32::MAX).room(), (495 * cpus).max(64));
        assert_eq!(sampling(99, 16).room(), 16);
        assert_eq!(sampling(1, u32::MAX).room(), (5 * cpus).max(64));
        assert_eq!(sampling(0, u32::MAX).room(), 1);
    }

    #[test]
    fn a_period_is_the_inverse_of_the_frequency() {
        let sampling = Sampling {
            frequency: 99,
            different: 1,
        };
        assert_eq!(sampling.period(), Duration::from_nanos(10_101_010));
    }
}
