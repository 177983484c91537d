//! The overhead in the targets: traps, calibrated on this machine, and time in the BPF
//! programs, sampled in short windows.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use aya::programs::Program;
use aya::sys::{Stats, enable_stats};

use super::connections::Connections;
use super::hits::{Hit, Hits};
use super::loaded::Loaded;
use super::runs::{Estimate, Measured};

pub use super::runs::{ProgramRuns, Runs};
pub use super::trap::{TrapCost, calibrate};

/// Runs of our BPF programs and the time in them, extrapolated from windows in
/// which the kernel keeps statistics: keeping them always would itself cost.
#[derive(Default)]
pub struct RunMeter {
    window: Option<Open>,
    hastened: bool,
    estimate: Estimate,
}

/// A window that is open.
struct Open {
    /// The kernel keeps statistics until this is closed.
    _statistics: OwnedFd,
    began: Instant,
    calls_in: Duration,
    before: ProgramRuns,
}

const WINDOW: Duration = Duration::from_millis(200);
const PERIOD: Duration = Duration::from_secs(2);

impl RunMeter {
    /// Measures from now on, and leaves out what came before. `calls_in`: for how long there
    /// have been hooks on socket calls, in total.
    pub fn begin(&mut self, loaded: &Loaded, calls_in: Duration) {
        self.estimate = Estimate::from(Instant::now(), calls_in);
        self.open(loaded, calls_in);
    }

    /// Ends the estimate at this time.
    pub fn end(&mut self, loaded: &Loaded, calls_in: Duration) {
        match self.window.take() {
            // One that has just begun says nothing of the seconds before it.
            Some(open)
                if open.began.elapsed() >= WINDOW / 2
                    || self.estimate.measured.length.is_zero() =>
            {
                self.close(&open, loaded, calls_in);
            }
            _ => self.estimate.extrapolate(Instant::now(), calls_in),
        }
    }

    /// Opens and closes windows; to be called a few times a second. `calls_in` as for
    /// [`begin`](Self::begin). True if a window was closed.
    pub fn tick(&mut self, loaded: &Loaded, calls_in: Duration) -> bool {
        let is_due = self.hastened || self.estimate.last_end.elapsed() + WINDOW >= PERIOD;
        match self.window.take() {
            None if is_due => {
                self.open(loaded, calls_in);
                false
            }
            Some(open) if open.began.elapsed() >= WINDOW => {
                self.close(&open, loaded, calls_in);
                true
            }
            window => {
                self.window = window;
                false
            }
        }
    }

    /// The next window opens at once.
    pub const fn hasten(&mut self) {
        self.hastened = true;
    }

    fn open(&mut self, loaded: &Loaded, calls_in: Duration) {
        self.hastened = false;
        self.window = enable_stats(Stats::RunTime).ok().map(|statistics| Open {
            _statistics: statistics,
            began: Instant::now(),
            calls_in,
            before: runs(loaded),
        });
    }

    fn close(&mut self, open: &Open, loaded: &Loaded, calls_in: Duration) {
        let now = Instant::now();
        self.estimate.measured = Measured {
            runs: runs(loaded).since(open.before),
            length: now.duration_since(open.began),
            calls_in: calls_in.saturating_sub(open.calls_in),
        };
        self.estimate.extrapolate(now, calls_in);
    }

    /// Up to which of the time with hooks on socket calls their runs are in
    /// [`total`](Self::total).
    pub const fn calls_known(&self) -> Duration {
        self.estimate.calls_known
    }

    /// The estimate up to the end of the last window.
    pub const fn total(&self) -> ProgramRuns {
        self.estimate.total
    }
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn runs(loaded: &Loaded) -> ProgramRuns {
    let mut sum = ProgramRuns::default();
    for (name, program) in loaded.bpf.programs() {
        let Ok(info) = program.info() else {
            continue;
        };
        let runs = Runs {
            count: info.run_count() as f64,
            seconds: info.run_time().as_secs_f64(),
            cold: 0.0,
        };
        if matches!(program, Program::UProbe(_)) {
            sum.probes.add(runs, 1.0);
        } else if loaded.connections.is_at_calls(name) {
            sum.calls.add(runs, 1.0);
        } else if Connections::is_at_states(name) {
            sum.states.add(runs, 1.0);
        } else {
            sum.others.add(runs, 1.0);
        }
    }
    sum
}

/// Estimated CPU seconds that targets spent on probes: traps by the calibrated cost of one, and
/// their programs. The least program run is counted on both sides; the estimate is that much too
/// high rather than too low.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
pub fn probe_seconds(hits: &Hits, trap: TrapCost, runs: Runs) -> f64 {
    let count = |hit| hits.of(hit) as f64;
    count(Hit::Entry) * trap.entry.as_secs_f64()
        + count(Hit::Return) * trap.exit.saturating_sub(trap.entry).as_secs_f64()
        + count(Hit::SingleStep) * trap.single_step.as_secs_f64()
        + program_seconds(runs)
}

/// What a run that finds the caches cold costs its caller, of the time that it takes longer than a
/// warm one: the lines that it fetches displace the caller's. No statistics show that. Fitted to socket
/// calls of nginx (docs/journal/2026-11-28-what-statistics-do-not-show.md); for probes, whose programs
/// do more when they are warm, it was checked, not fitted
/// (docs/journal/2026-11-28-what-probes-displace.md).
const DISPLACED: f64 = 0.7;

/// Estimated CPU seconds that programs cost those in whose threads they ran. The way to a program is
/// not in the kernel's statistics, but one of their own two readings of the clock is, which takes
/// about as long.
pub fn program_seconds(runs: Runs) -> f64 {
    runs.seconds + runs.cold * DISPLACED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_of_programs_has_what_cold_runs_displace() {
        let runs = Runs {
            count: 2e6,
            seconds: 0.5,
            cold: 0.24,
        };
        assert!((program_seconds(runs) - 0.668).abs() < 1e-9);
    }

    #[test]
    fn the_estimate_adds_traps_and_programs() {
        let trap = TrapCost {
            entry: Duration::from_micros(1),
            exit: Duration::from_micros(3),
            single_step: Duration::from_micros(10),
        };
        let seconds = probe_seconds(
            &Hits::new([1000, 500, 7, 0, 100]),
            trap,
            Runs {
                count: 1.0,
                seconds: 0.5,
                cold: 0.4,
            },
        );
        assert!((seconds - 0.783).abs() < 1e-9, "{seconds}");
    }
}
