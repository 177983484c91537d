//! The clocks that the CPUs are sampled by: a perf event on each.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use aya::Ebpf;
use aya::maps::{MapData, PerCpuArray};
use aya::programs::PerfEvent;
use aya::programs::perf_event::{
    PerfEventConfig, PerfEventLink, PerfEventScope, SamplePolicy, SoftwareEvent,
};
use aya::util::online_cpus;

use super::error::{LoadError, maps, refused};
use super::object::{program, take_map};

const PROGRAM: &str = "cpu_sample";

/// A clock without a tick for so many periods, and a second, stands still.
const PATIENCE_PERIODS: u32 = 3;

/// The clocks of all CPUs that are on line. Dropped, they stop.
pub(super) struct Clocks {
    /// From one tick to the next; None while they are stopped.
    period: Option<Duration>,
    ticks: PerCpuArray<MapData, u64>,
    by_cpu: BTreeMap<u32, Clock>,
}

struct Clock {
    _link: PerfEventLink,
    progress: Progress,
}

/// Whether a clock goes.
#[derive(Clone, Copy, Debug)]
struct Progress {
    ticks: u64,
    since: Instant,
}

impl Progress {
    /// Notes the number of ticks; false if it has been the same for too long.
    fn goes(&mut self, ticks: u64, now: Instant, patience: Duration) -> bool {
        if ticks != self.ticks {
            *self = Self { ticks, since: now };
        }
        now.duration_since(self.since) < patience
    }
}

impl Clocks {
    /// Loads the program that samples, and starts the clocks.
    ///
    /// # Errors
    ///
    /// [`LoadError`], if none could be started.
    pub(super) fn start(bpf: &mut Ebpf, period: Duration) -> Result<Self, LoadError> {
        program::<PerfEvent>(bpf, PROGRAM)?
            .load()
            .map_err(refused(PROGRAM))?;
        let ticks = take_map(bpf, "sample_ticks")?;
        let mut clocks = Self {
            period: Some(period),
            ticks: PerCpuArray::try_from(ticks).map_err(maps)?,
            by_cpu: BTreeMap::new(),
        };
        match clocks.follow_cpus(bpf) {
            Err(error) if clocks.by_cpu.is_empty() => Err(error),
            _ => Ok(clocks),
        }
    }

    /// So much time from one tick to the next from now on; None stops them.
    ///
    /// # Errors
    ///
    /// As for [`follow_cpus`](Self::follow_cpus).
    pub(super) fn set_period(
        &mut self,
        bpf: &mut Ebpf,
        period: Option<Duration>,
    ) -> Result<(), LoadError> {
        if self.period == period {
            return Ok(());
        }
        self.period = period;
        self.by_cpu.clear();
        self.follow_cpus(bpf)
    }

    /// Starts the clocks of CPUs that came on line, and those that stand still: a CPU
    /// that goes off line takes its perf events with it, and does not bring them back.
    ///
    /// # Errors
    ///
    /// The last reason why a clock could not be started. It is tried again next time.
    pub(super) fn follow_cpus(&mut self, bpf: &mut Ebpf) -> Result<(), LoadError> {
        let Some(period) = self.period else {
            return Ok(());
        };
        let cpus = online_cpus().map_err(|(_, error)| LoadError::Maps(error.into()))?;
        self.by_cpu.retain(|cpu, _| cpus.contains(cpu));
        let ticks = self.ticks.get(&0, 0).ok();
        let patience = Duration::from_secs(1) + period * PATIENCE_PERIODS;
        let now = Instant::now();
        let mut result = Ok(());
        for cpu in cpus {
            let ticks = ticks.as_ref().and_then(|all| all.get(cpu as usize));
            let ticks = ticks.copied().unwrap_or_default();
            if let Some(clock) = self.by_cpu.get_mut(&cpu)
                && clock.progress.goes(ticks, now, patience)
            {
                continue;
            }
            self.by_cpu.remove(&cpu);
            let since = now;
            let progress = Progress { ticks, since };
            match attach(bpf, cpu, period) {
                Ok(_link) => drop(self.by_cpu.insert(cpu, Clock { _link, progress })),
                Err(error) => result = Err(error),
            }
        }
        result
    }
}

/// By a period, not by a frequency, which the kernel would adapt.
fn attach(bpf: &mut Ebpf, cpu: u32, period: Duration) -> Result<PerfEventLink, LoadError> {
    let program: &mut PerfEvent = program(bpf, PROGRAM)?;
    let nanos = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
    let attached = program.attach(
        // Needs no hardware counter, which guests often lack.
        PerfEventConfig::Software(SoftwareEvent::CpuClock),
        PerfEventScope::AllProcessesOneCpu { cpu },
        SamplePolicy::Period(nanos),
        false,
    );
    attached
        .and_then(|id| program.take_link(id))
        .map_err(refused(PROGRAM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_stands_still_is_found_out() {
        let began = Instant::now();
        let second = Duration::from_secs(1);
        let mut progress = Progress {
            ticks: 7,
            since: began,
        };
        assert!(progress.goes(7, began + second / 2, second));
        assert!(progress.goes(8, began + second * 5, second));
        assert!(progress.goes(8, began + second * 5 + second / 2, second));
        assert!(!progress.goes(8, began + second * 6, second));
        assert!(progress.goes(9, began + second * 7, second));
    }
}
