//! Runs of BPF programs and the time in them, as the programs count them themselves.

use aya::maps::{MapData, PerCpuArray};

use super::plain::Pod;
use tlsprof_common::contract::{
    TLSPROF_RUN_CALL, TLSPROF_RUN_COUNT, TLSPROF_RUN_IDLE, TLSPROF_RUN_OTHER, TLSPROF_RUN_PROBE,
    TLSPROF_RUN_STATE, TLSPROF_RUN_SWITCH, tlsprof_runs,
};

/// Seconds of a run that finds the caches warm, as at a request on an open connection.
const WARM: f64 = 55e-9;

/// Runs and time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Runs {
    /// How many.
    pub count: f64,
    /// Seconds.
    pub seconds: f64,
    /// Those of the seconds that they took longer than warm ones.
    pub cold: f64,
}

impl Runs {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.seconds += other.seconds;
        self.cold += other.cold;
    }

    /// `self` and `before` are counters, whose `cold` is not used.
    fn since(self, before: Self) -> Self {
        let count = self.count - before.count;
        let seconds = self.seconds - before.seconds;
        Self {
            count,
            seconds,
            cold: (seconds - count * WARM).max(0.0),
        }
    }
}

/// The same by whom the time is taken from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProgramRuns {
    /// Uprobes: the processes that are probed.
    pub probes: Runs,
    /// Threads of the whole host: on socket calls.
    pub calls: Runs,
    /// Likewise: at changes of a connection's state, and at accepts.
    pub states: Runs,
    /// Likewise: in the scheduler, of processes, and samples.
    pub others: Runs,
    /// Threads of the whole host: clocks are stopped in the scheduler, but for the time between
    /// windows of socket calls.
    pub switches: Runs,
    /// Nobody: samples of idle CPUs.
    pub idle: Runs,
}

impl ProgramRuns {
    /// The counters of now.
    pub(super) fn read(map: &PerCpuArray<MapData, Pod<tlsprof_runs>>) -> Self {
        let of = |kind| sum(map, kind);
        const { assert!(TLSPROF_RUN_COUNT == 6, "a kind that is read nowhere") };
        Self {
            probes: of(TLSPROF_RUN_PROBE),
            calls: of(TLSPROF_RUN_CALL),
            states: of(TLSPROF_RUN_STATE),
            others: of(TLSPROF_RUN_OTHER),
            switches: of(TLSPROF_RUN_SWITCH),
            idle: of(TLSPROF_RUN_IDLE),
        }
    }

    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            probes: self.probes.since(before.probes),
            calls: self.calls.since(before.calls),
            states: self.states.since(before.states),
            others: self.others.since(before.others),
            switches: self.switches.since(before.switches),
            idle: self.idle.since(before.idle),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.probes.add(other.probes);
        self.calls.add(other.calls);
        self.states.add(other.states);
        self.others.add(other.others);
        self.switches.add(other.switches);
        self.idle.add(other.idle);
    }

    /// On hooks of the kernel, in somebody's time.
    pub fn hooks(&self) -> Runs {
        let mut hooks = self.calls;
        hooks.add(self.states);
        hooks.add(self.others);
        hooks.add(self.switches);
        hooks
    }

    /// All of them.
    pub fn all(&self) -> Runs {
        let mut all = self.hooks();
        all.add(self.probes);
        all.add(self.idle);
        all
    }
}

/// Over all CPUs; 0 where it cannot be read.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn sum(map: &PerCpuArray<MapData, Pod<tlsprof_runs>>, kind: u32) -> Runs {
    let mut sum = Runs::default();
    let Ok(cpus) = map.get(&kind, 0) else {
        return sum;
    };
    for Pod(cpu) in cpus.iter() {
        sum.count += cpu.count as f64;
        sum.seconds += cpu.nanos as f64 / 1e9;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn runs(count: f64, seconds: f64) -> Runs {
        Runs {
            count,
            seconds,
            cold: 0.0,
        }
    }

    #[test]
    fn what_takes_longer_than_warm_runs_is_cold() {
        let cold = |count, seconds| runs(5.0 + count, 1.0 + seconds).since(runs(5.0, 1.0)).cold;
        assert!((cold(1e6, 0.5) - (0.5 - 1e6 * WARM)).abs() < 1e-9);
        assert!(cold(1e6, 0.05).abs() < 1e-9);
    }

    #[test]
    fn samples_of_idle_cpus_are_taken_from_nobody() {
        let one = ProgramRuns {
            probes: runs(1.0, 0.1),
            calls: runs(2.0, 0.2),
            states: runs(3.0, 0.3),
            others: runs(4.0, 0.4),
            switches: runs(6.0, 0.6),
            idle: runs(5.0, 0.5),
        };
        assert!((one.hooks().count - 15.0).abs() < 1e-9);
        assert!((one.all().count - 21.0).abs() < 1e-9);
        let mut sum = ProgramRuns::default();
        sum.add(&one);
        assert_eq!(sum.since(&ProgramRuns::default()).all().count, 21.0);
    }
}
