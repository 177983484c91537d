//! What probes in libraries cost for each handshake, on the rungs where they were tried. Pure.
//!
//! Some of them are attached for a second from time to time only, which an interval has more of than
//! its part, or nothing.

use std::time::Duration;

use super::ladder::{LADDER, rung_at};
use super::spent::Spent;

/// Fewer handshakes than this say nothing of what probes cost for each.
const LEAST_HANDSHAKES: f64 = 20.0;
/// The probes that count handshakes are at least this part of all.
const COUNTING: f64 = 0.3;
/// Of these and of steps 1 s in 10, they are at least this part.
const FEW_STEPS: f64 = 0.8;
/// Where steps were probed for more of an interval than this, too little of it shows what there is
/// without them.
const MOST_STEPS: f64 = 0.75;
/// Where key derivation was probed for less of an interval than this, the rest varies as much.
const LEAST_DERIVATION: f64 = 0.2;
/// Where it is probed for more of the time than this, or more often, few intervals are without it.
const MOST_DERIVATION: f64 = 0.25;
const SHORTEST_PERIOD: Duration = Duration::from_secs(8);

/// CPU seconds for each handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeCosts {
    /// By rung; without key derivation, where that comes and goes.
    each: [Option<f64>; LADDER.len()],
    /// Key derivation, were it probed all the time.
    derivation: f64,
}

impl ProbeCosts {
    /// Takes note of an interval on a rung. Returns what probes would have cost in it if those that are
    /// attached in windows had been for their usual part of it.
    pub(super) fn note(&mut self, level: usize, spent: &Spent) -> f64 {
        if spent.handshakes < LEAST_HANDSHAKES || !rung_at(level).library {
            return spent.probes;
        }
        let seen = spent.probes / spent.handshakes;
        let has_derivation = spent.derivation > 0.0 && comes_and_goes(spent);
        let each = match self.known(level).filter(|_| has_derivation) {
            Some(known) => {
                // On other rungs steps come and go as well.
                if level == 0 && spent.derivation > LEAST_DERIVATION {
                    self.derivation = ((seen - known) / spent.derivation).max(0.0);
                }
                known
            }
            None => {
                let seen = (seen - self.derivation * spent.derivation).max(0.0);
                let each = self.with_usual_steps(level, seen, spent);
                if let Some(known) = self.each.get_mut(level) {
                    *known = Some(each);
                }
                each
            }
        };
        (each + self.of_derivation(level, spent)) * spent.handshakes
    }

    /// What was seen for each handshake, with steps for as much of the time as the rung says.
    fn with_usual_steps(&self, level: usize, seen: f64, spent: &Spent) -> f64 {
        if level == 0 {
            return seen;
        }
        let is_clear = spent.steps <= MOST_STEPS;
        let Some(all) = self.known(0).filter(|_| is_clear) else {
            return self.known(level).unwrap_or(seen);
        };
        let steps = (all - seen).max(0.0) / (1.0 - spent.steps);
        let usual = rung_at(level).steps.ratio();
        steps
            .mul_add(usual - spent.steps, seen)
            .max(seen * COUNTING)
    }

    /// Of key derivation on that rung, for each handshake in the long run.
    fn of_derivation(&self, level: usize, spent: &Spent) -> f64 {
        match comes_and_goes(spent) {
            true => self.derivation * derivation_on(level, spent),
            false => 0.0,
        }
    }

    /// What probes would cost on a rung below that one, at least. `spent` has what they cost now in the
    /// long run.
    pub(super) fn below(&self, now: usize, level: usize, spent: &Spent) -> f64 {
        let (all, few, rung) = (rung_at(0), rung_at(now), rung_at(level));
        if !rung.library {
            return 0.0;
        }
        let Some(each) = self.known(0).filter(|_| now > 0) else {
            return spent.probes * COUNTING;
        };
        // Two rungs that differ in steps alone tell what these cost.
        let probes = spent.probes - self.of_derivation(now, spent) * spent.handshakes;
        let fewer = all.steps.ratio() - few.steps.ratio();
        let steps = (each * spent.handshakes - probes) / fewer;
        let saved = steps * (few.steps.ratio() - rung.steps.ratio());
        let derivation = self.of_derivation(level, spent) * spent.handshakes;
        probes - saved.clamp(0.0, probes.max(0.0) * (1.0 - FEW_STEPS)) + derivation
    }

    /// What they would cost on a rung above, at least, where it was not tried; 0 where none was that has
    /// some.
    pub(super) fn above(&self, level: usize, spent: &Spent) -> f64 {
        if !rung_at(level).library {
            return 0.0;
        }
        let least = || self.known(0).map(|each| each * COUNTING);
        let each = self.known(level).or_else(least).unwrap_or_default();
        (each + self.of_derivation(level, spent)) * spent.handshakes
    }

    fn known(&self, level: usize) -> Option<f64> {
        self.each.get(level).copied().flatten()
    }
}

/// For how much of the time key derivation is probed on that rung.
fn derivation_on(level: usize, spent: &Spent) -> f64 {
    rung_at(level).key_derivation(spent.key_derivation).ratio()
}

/// Whether key derivation is probed from time to time. If not, it is a part of all that is seen.
fn comes_and_goes(spent: &Spent) -> bool {
    let asked = spent.key_derivation;
    asked.period >= SHORTEST_PERIOD && asked.ratio() <= MOST_DERIVATION
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::governor::Duty;

    /// Microseconds of a handshake: counting, steps, key derivation.
    const PARTS: [f64; 3] = [8.0, 12.0, 5.0];
    const DERIVATION: Duty = Duty {
        window: Duration::from_secs(1),
        period: Duration::from_secs(20),
    };

    /// An interval of 100 handshakes, with steps and key derivation for such parts of it.
    fn interval(steps: f64, derivation: f64) -> Spent {
        let [counting, of_steps, deriving] = PARTS;
        let each = counting + of_steps * steps + deriving * derivation;
        Spent {
            probes: each * 100.0 / 1e6,
            steps,
            derivation,
            key_derivation: DERIVATION,
            handshakes: 100.0,
            ..Spent::default()
        }
    }

    /// What probes cost a handshake, as it is understood.
    fn understood(costs: &mut ProbeCosts, level: usize, steps: f64, derivation: f64) -> f64 {
        costs.note(level, &interval(steps, derivation)) * 1e4
    }

    /// That know all about the highest rung.
    fn experienced() -> ProbeCosts {
        let mut costs = ProbeCosts::default();
        understood(&mut costs, 0, 1.0, 0.0);
        understood(&mut costs, 0, 1.0, 0.5);
        costs
    }

    fn assert_near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-6, "{value}, not {expected}");
    }

    #[test]
    fn a_window_of_key_derivation_costs_its_part_of_the_time() {
        let mut costs = ProbeCosts::default();
        // The profile begins with one: nothing is known of the rest.
        assert_near(understood(&mut costs, 0, 1.0, 0.5), 22.5);
        assert_near(understood(&mut costs, 0, 1.0, 0.0), 20.0);
        for derivation in [0.5, 0.0, 0.1] {
            assert_near(understood(&mut costs, 0, 1.0, derivation), 20.25);
        }
    }

    #[test]
    fn key_derivation_that_is_probed_most_of_the_time_is_a_part_of_all() {
        let mut costs = ProbeCosts::default();
        let often = |steps| Spent {
            key_derivation: Duty::ALWAYS,
            ..interval(steps, 1.0)
        };
        for _ in 0..2 {
            assert_near(costs.note(0, &often(1.0)) * 1e4, 25.0);
        }
        assert_near(costs.above(0, &often(1.0)) * 1e4, 25.0);
    }

    #[test]
    fn windows_of_steps_cost_their_part_of_the_time_also_with_key_derivation() {
        for (level, usual) in [(1, 8.0 + 1.2 + 0.25), (2, 8.0 + 0.2 + 5.0 / 60.0)] {
            for (steps, derivation) in [(0.0, 0.0), (0.25, 0.0), (0.5, 0.5), (0.75, 0.1)] {
                let mut costs = experienced();
                for _ in 0..2 {
                    assert_near(understood(&mut costs, level, steps, derivation), usual);
                }
            }
        }
    }

    #[test]
    fn an_interval_with_hardly_anything_but_steps_tells_nothing_else() {
        let mut costs = experienced();
        understood(&mut costs, 1, 0.5, 0.0);
        assert_near(understood(&mut costs, 1, 0.9, 0.0), 9.45);
    }

    #[test]
    fn a_rung_above_costs_what_it_did_for_each_handshake() {
        let mut costs = experienced();
        understood(&mut costs, 1, 0.5, 0.0);
        let calm = Spent {
            handshakes: 10.0,
            ..interval(0.0, 0.0)
        };
        assert_near(costs.above(0, &calm) * 1e5, 20.25);
        assert_near(costs.above(1, &calm) * 1e5, 9.45);
        // It was never tried.
        assert_near(costs.above(2, &calm) * 1e5, 6.0 + 5.0 / 60.0);
        assert_near(costs.above(4, &calm), 0.0);
    }

    #[test]
    fn few_handshakes_say_nothing() {
        let mut costs = ProbeCosts::default();
        let few = Spent {
            handshakes: 19.0,
            ..interval(1.0, 0.0)
        };
        assert_near(costs.note(0, &few), few.probes);
        assert_near(costs.above(0, &interval(1.0, 0.0)), 0.0);
    }
}
