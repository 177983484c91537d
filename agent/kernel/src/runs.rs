//! Runs of BPF programs and the time in them, extrapolated from windows of statistics. Pure.

use std::time::{Duration, Instant};

/// Seconds of a run that finds the caches warm, as at a request on an open connection.
const WARM: f64 = 130e-9;

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
    /// Adds `other`, `scale` times.
    pub(super) fn add(&mut self, other: Self, scale: f64) {
        self.count += other.count * scale;
        self.seconds += other.seconds * scale;
        self.cold += other.cold * scale;
    }

    /// `self` and `before` are counters, whose `cold` is not used.
    pub(super) fn since(self, before: Self) -> Self {
        let count = self.count - before.count;
        let seconds = self.seconds - before.seconds;
        Self {
            count,
            seconds,
            cold: (seconds - count * WARM).max(0.0),
        }
    }
}

/// The same by kind of program.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProgramRuns {
    /// Uprobes: in the processes that are probed.
    pub probes: Runs,
    /// In the threads of the whole host: on socket calls.
    pub calls: Runs,
    /// Likewise: at changes of a connection's state, and at accepts.
    pub states: Runs,
    /// Likewise: in the scheduler, of processes, and samples.
    pub others: Runs,
}

impl ProgramRuns {
    pub(super) fn since(&self, before: Self) -> Self {
        Self {
            probes: self.probes.since(before.probes),
            calls: self.calls.since(before.calls),
            states: self.states.since(before.states),
            others: self.others.since(before.others),
        }
    }

    /// On hooks of the kernel.
    pub fn hooks(&self) -> Runs {
        let mut hooks = self.calls;
        hooks.add(self.states, 1.0);
        hooks.add(self.others, 1.0);
        hooks
    }
}

/// What ran in a window of statistics.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    pub runs: ProgramRuns,
    pub length: Duration,
    /// For how much of it there were hooks on socket calls.
    pub(crate) calls_in: Duration,
}

/// The runs of all programs, extrapolated from windows.
pub(super) struct Estimate {
    pub(crate) last_end: Instant,
    /// Up to which of the time with hooks on socket calls their runs are known.
    pub calls_known: Duration,
    /// The last window.
    pub(crate) measured: Measured,
    pub total: ProgramRuns,
}

impl Default for Estimate {
    fn default() -> Self {
        Self::from(Instant::now(), Duration::ZERO)
    }
}

impl Estimate {
    /// Nothing yet; `calls_in`: for how long there have been hooks on socket calls.
    pub fn from(now: Instant, calls_in: Duration) -> Self {
        Self {
            last_end: now,
            calls_known: calls_in,
            measured: Measured::default(),
            total: ProgramRuns::default(),
        }
    }

    /// Adds the time since the last extrapolation, as if all of it had been like the last window.
    pub(crate) fn extrapolate(&mut self, now: Instant, calls_in: Duration) {
        let Measured {
            runs,
            length,
            calls_in: seen,
        } = self.measured;
        if length.is_zero() {
            return;
        }
        let scale = now.duration_since(self.last_end).div_duration_f64(length);
        self.total.probes.add(runs.probes, scale);
        self.total.states.add(runs.states, scale);
        self.total.others.add(runs.others, scale);
        if !seen.is_zero() {
            let all = calls_in.saturating_sub(self.calls_known);
            self.total.calls.add(runs.calls, all.div_duration_f64(seen));
            self.calls_known = calls_in;
        }
        self.last_end = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_known_from_the_beginning_to_the_end() {
        let second = Duration::from_secs(1);
        let ten = Runs {
            count: 10.0,
            seconds: 1e-6,
            cold: 0.0,
        };
        let began = Instant::now();
        let mut estimate = Estimate::from(began, second);
        estimate.extrapolate(began + second, 2 * second);
        assert_eq!(estimate.total, ProgramRuns::default());
        // A window of 200 ms, of half of which socket calls were seen; it is the only one of 5 s.
        estimate.measured = Measured {
            runs: ProgramRuns {
                probes: ten,
                calls: ten,
                states: ten,
                others: ten,
            },
            length: second / 5,
            calls_in: second / 10,
        };
        estimate.extrapolate(began + second, 2 * second);
        estimate.extrapolate(began + 5 * second, 4 * second);
        let total = estimate.total;
        let near = |runs: Runs, count: f64| (runs.count - count).abs() < 1e-6;
        assert!(near(total.probes, 250.0) && near(total.states, 250.0));
        assert!(near(total.others, 250.0) && near(total.hooks(), 800.0));
        // Socket calls were seen for 3 s of these 5.
        assert!(near(total.calls, 300.0), "{total:?}");
        assert_eq!(estimate.calls_known, 4 * second);
    }

    #[test]
    fn what_takes_longer_than_warm_runs_is_cold() {
        let runs = |count, seconds| Runs {
            count,
            seconds,
            cold: 0.0,
        };
        let cold = |count, seconds| runs(5.0 + count, 1.0 + seconds).since(runs(5.0, 1.0)).cold;
        assert!((cold(1e6, 0.5) - (0.5 - 1e6 * WARM)).abs() < 1e-9);
        assert!(cold(1e6, 0.1).abs() < 1e-9);
    }
}
