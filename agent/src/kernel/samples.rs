//! Samples of the CPUs: a clock on each, and the samples that it left.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use aya::maps::{HashMap, Map, MapData, PerCpuArray};
use aya::programs::PerfEvent;
use aya::programs::perf_event::{
    PerfEventConfig, PerfEventLink, PerfEventScope, SamplePolicy, SoftwareEvent,
};
use aya::util::{nr_cpus, online_cpus};
use aya::{Ebpf, Pod};

use super::batch;
use super::contract::{TLSPROF_STACK_DEPTH, tlsprof_sample, tlsprof_sample_key};
use super::load::{LoadError, Loaded, program, refused, take_map};
use crate::causes::one_line;

const PROGRAM: &str = "cpu_sample";
const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Samples are taken from the kernel about once a second; there is room for those of
/// two seconds, however different they are.
const SECONDS: u64 = 2;
const LEAST_ROOM: u64 = 64;
/// Taken by one system call: 256 KiB.
const BATCH: usize = 256;

/// How to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Samples a second on each CPU; 0 for none.
    pub frequency: u32,
    /// Most different samples that the kernel keeps until they are taken.
    pub different: u32,
}

impl Sampling {
    /// Entries of the kernel's table, some 1100 bytes each.
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

/// [`tlsprof_sample_key`] as a map key.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
struct Key(tlsprof_sample_key);

#[allow(unsafe_code, reason = "aya asks for this promise about map keys")]
// SAFETY: a C structure of integers, without padding.
unsafe impl Pod for Key {}

/// [`tlsprof_sample`] as a map value.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
struct Sample(tlsprof_sample);

#[allow(unsafe_code, reason = "aya asks for this promise about map values")]
// SAFETY: a C structure of integers and an array of them, without padding.
unsafe impl Pod for Sample {}

const EMPTY: Sample = Sample(tlsprof_sample {
    count: 0,
    instruction: 0,
    length: 0,
    reserved: 0,
    data: [0; TLSPROF_STACK_DEPTH as usize],
});

/// The clock of one CPU. Dropped, it stops.
struct Clock {
    _link: PerfEventLink,
    progress: Progress,
}

/// Whether a clock goes.
#[derive(Clone, Copy, Debug)]
struct Progress {
    strikes: u64,
    since: Instant,
}

impl Progress {
    /// Takes note of the number of strikes; false if it has been the same for too long.
    fn goes(&mut self, strikes: u64, now: Instant, patience: Duration) -> bool {
        if strikes != self.strikes {
            *self = Self {
                strikes,
                since: now,
            };
        }
        now.duration_since(self.since) < patience
    }
}

/// The samples of all CPUs.
pub struct Samples {
    table: Map,
    strikes: PerCpuArray<MapData, u64>,
    sampling: Sampling,
    clocks: BTreeMap<u32, Clock>,
    /// The kernel can hand over many at once.
    in_batches: bool,
}

fn start(bpf: &mut Ebpf, sampling: Sampling) -> Result<Samples, LoadError> {
    program::<PerfEvent>(bpf, PROGRAM)?
        .load()
        .map_err(refused(PROGRAM))?;
    let strikes = take_map(bpf, "clock_strikes")?;
    let mut samples = Samples {
        table: take_map(bpf, "samples")?,
        strikes: PerCpuArray::try_from(strikes).map_err(|error| LoadError::Maps(error.into()))?,
        sampling,
        clocks: BTreeMap::new(),
        in_batches: true,
    };
    // One CPU that goes off line in between is no reason; that none works is.
    match samples.follow_cpus(bpf) {
        Err(error) if samples.clocks.is_empty() => Err(error),
        _ => Ok(samples),
    }
}

impl Samples {
    /// Starts the clocks of CPUs that came on line, and of those whose clock stopped
    /// when they were off line in between; lets go of the others.
    ///
    /// # Errors
    ///
    /// The last reason why a clock could not be started. It is tried again next time.
    fn follow_cpus(&mut self, bpf: &mut Ebpf) -> Result<(), LoadError> {
        let cpus = online_cpus().map_err(|(_, error)| LoadError::Maps(error.into()))?;
        self.clocks.retain(|cpu, _| cpus.contains(cpu));
        let strikes = self.strikes.get(&0, 0).ok();
        let patience = Duration::from_secs(1) + 3 * self.sampling.period();
        let now = Instant::now();
        let mut result = Ok(());
        for cpu in cpus {
            let strikes = strikes.as_ref().and_then(|all| all.get(cpu as usize));
            let strikes = strikes.copied().unwrap_or_default();
            if let Some(clock) = self.clocks.get_mut(&cpu)
                && clock.progress.goes(strikes, now, patience)
            {
                continue;
            }
            self.clocks.remove(&cpu);
            match attach(bpf, cpu, self.sampling) {
                Ok(link) => {
                    let since = now;
                    let progress = Progress { strikes, since };
                    let clock = Clock {
                        _link: link,
                        progress,
                    };
                    self.clocks.insert(cpu, clock);
                }
                Err(error) => result = Err(error),
            }
        }
        result
    }

    /// Takes all samples that are there.
    fn drain(&mut self, take: &mut impl FnMut(&tlsprof_sample_key, &tlsprof_sample)) {
        if self.in_batches
            && let Err(error) = self.drain_in_batches(take)
        {
            tracing::info!(
                error = one_line(&error),
                "the kernel hands over samples one by one"
            );
            self.in_batches = false;
        }
        if !self.in_batches {
            self.drain_one_by_one(take);
        }
    }

    fn drain_in_batches(
        &self,
        take: &mut impl FnMut(&tlsprof_sample_key, &tlsprof_sample),
    ) -> io::Result<()> {
        let Map::HashMap(table) = &self.table else {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        };
        let mut keys = vec![Key::default(); BATCH];
        let mut values = vec![EMPTY; BATCH];
        let mut position = None;
        loop {
            let taken = batch::take(table.fd().as_fd(), position, &mut keys, &mut values)?;
            for (key, value) in keys.iter().zip(&values).take(taken.count) {
                take(&key.0, &value.0);
            }
            position = taken.next;
            if position.is_none() {
                return Ok(());
            }
        }
    }

    /// What is counted between reading and removing is lost: a few in a million.
    fn drain_one_by_one(&mut self, take: &mut impl FnMut(&tlsprof_sample_key, &tlsprof_sample)) {
        let Ok(mut table) = HashMap::<_, Key, Sample>::try_from(&mut self.table) else {
            return;
        };
        // Bounded: a key that is removed under the iteration makes it begin again.
        let most = self.sampling.room() as usize;
        let keys: Vec<Key> = table.keys().take(most).filter_map(Result::ok).collect();
        for key in keys {
            let Ok(value) = table.get(&key, 0) else {
                continue;
            };
            if table.remove(&key).is_ok() {
                take(&key.0, &value.0);
            }
        }
    }
}

fn attach(bpf: &mut Ebpf, cpu: u32, sampling: Sampling) -> Result<PerfEventLink, LoadError> {
    let program: &mut PerfEvent = program(bpf, PROGRAM)?;
    let period = NANOS_PER_SECOND / u64::from(sampling.frequency.max(1));
    let attached = program.attach(
        // The clock of the CPU, not of its tasks: no hardware counter is needed.
        PerfEventConfig::Software(SoftwareEvent::CpuClock),
        PerfEventScope::AllProcessesOneCpu { cpu },
        SamplePolicy::Period(period),
        false,
    );
    attached
        .and_then(|id| program.take_link(id))
        .map_err(refused(PROGRAM))
}

impl Loaded {
    /// Starts the clocks of all CPUs that are on line; what came of it is in
    /// [`samples`](Self::samples).
    pub fn start_samples(&mut self) {
        self.samples = if self.sampling.frequency == 0 {
            Err("switched off by profile.sample_frequency".to_owned())
        } else {
            start(&mut self.bpf, self.sampling).map_err(|error| one_line(&error))
        };
    }

    /// Hands over the samples since the last time, and keeps the clocks of all CPUs
    /// going; to be called about once a second.
    pub fn take_samples(&mut self, mut take: impl FnMut(&tlsprof_sample_key, &tlsprof_sample)) {
        let Ok(samples) = &mut self.samples else {
            return;
        };
        samples.drain(&mut take);
        if let Err(error) = samples.follow_cpus(&mut self.bpf) {
            tracing::debug!(error = one_line(&error), "a CPU is not sampled");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_stands_still_is_found_out() {
        let began = Instant::now();
        let second = Duration::from_secs(1);
        let mut progress = Progress {
            strikes: 7,
            since: began,
        };
        assert!(progress.goes(7, began + second / 2, second));
        assert!(progress.goes(8, began + second * 5, second));
        assert!(progress.goes(8, began + second * 5 + second / 2, second));
        assert!(!progress.goes(8, began + second * 6, second));
        // Counted from the beginning again by another program: it goes.
        assert!(progress.goes(1, began + second * 7, second));
    }

    #[test]
    fn room_is_for_two_seconds_within_the_limit() {
        let cpus = nr_cpus().map_or(1, std::num::NonZeroU32::get);
        let sampling = |frequency, different| Sampling {
            frequency,
            different,
        };
        assert_eq!(sampling(99, u32::MAX).room(), (198 * cpus).max(64));
        assert_eq!(sampling(99, 16).room(), 16);
        assert_eq!(sampling(1, u32::MAX).room(), (2 * cpus).max(64));
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
