//! The overhead in the targets: traps, calibrated on this machine, and time in the BPF
//! programs, which these count.

use std::time::{Duration, Instant};

use super::hits::{Hit, Hits};
use super::loaded::Loaded;

pub use super::runs::{ProgramRuns, Runs};
pub use super::trap::{TrapCost, calibrate};

/// Adds up what the programs count, an interval at a time.
pub struct RunMeter {
    read_at: Instant,
    counters: ProgramRuns,
    total: ProgramRuns,
}

const PERIOD: Duration = Duration::from_secs(2);

impl RunMeter {
    /// Measures from now on, and leaves out what came before.
    pub fn new(loaded: &Loaded) -> Self {
        Self {
            read_at: Instant::now(),
            counters: loaded.runs(),
            total: ProgramRuns::default(),
        }
    }

    /// Reads the counters where it is time for it; to be called a few times a second.
    pub fn turn(&mut self, loaded: &Loaded) {
        if self.read_at.elapsed() >= PERIOD {
            self.read(loaded);
        }
    }

    /// Reads the counters.
    pub fn read(&mut self, loaded: &Loaded) {
        let counters = loaded.runs();
        self.total.add(&counters.since(&self.counters));
        (self.counters, self.read_at) = (counters, Instant::now());
    }

    /// What ran up to now.
    pub fn up_to_now(&self, loaded: &Loaded) -> ProgramRuns {
        let mut total = self.total;
        total.add(&loaded.runs().since(&self.counters));
        total
    }

    /// What ran up to the last reading.
    pub const fn total(&self) -> &ProgramRuns {
        &self.total
    }
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

/// Seconds of a run that are not in the time that is taken in it: the way to the program and the counting, less
/// the reading of the clock that is in it and that most runs do not have. Fitted to small requests
/// (docs/journal/2026-11-29-programs-count-their-runs.md).
const AROUND: f64 = 25e-9;

/// Estimated CPU seconds that programs cost those in whose threads they ran.
pub fn program_seconds(runs: Runs) -> f64 {
    runs.seconds + runs.count * AROUND + runs.cold * DISPLACED
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
        assert!((program_seconds(runs) - (0.668 + 0.05)).abs() < 1e-9);
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
                count: 1e6,
                seconds: 0.5,
                cold: 0.4,
            },
        );
        assert!((seconds - (0.783 + 0.025)).abs() < 1e-9, "{seconds}");
    }
}
