//! Keeps what profiling costs the targets within its budget. Pure.
//!
//! What is measured is a ladder: each rung costs less than the one above and says less.
//! Counts of connections, their bytes, ends and TIME_WAIT are exact on all of them.
//! Docs: accounting.md, "The budget".

mod ladder;
mod probe_costs;
mod spent;

use ladder::rung_at;
pub(crate) use ladder::{CALLS_WINDOW, Duty, Keep, Rung};
use probe_costs::ProbeCosts;
use spent::LEAST_CPU_SECONDS;
pub(crate) use spent::{InWindows, Spent};

/// What is never taken out may exceed the budget alone. The rest may cost this part of it
/// all the same: to measure still less would save next to nothing.
const LEAST_PART: f64 = 0.2;
/// A rung down is taken when it leaves at most this part of what the one of now costs.
const LEAST_SAVED: f64 = 0.95;
/// A rung up is taken when it would cost at most this part of the budget.
const ROOM: f64 = 0.8;
/// Intervals in a row that must show that room, at first. Those in which the targets are idle do not count.
const PATIENCE: u32 = 5;
/// And so many measurements of socket calls: where these are seen in windows, an interval may have none.
const LEAST_RATES: u32 = 2;
/// After a rung up that did not last so many intervals, twice as many must show room
/// before the next. After one that did, as many as at first.
const LASTING: u32 = 30;
const MOST_PATIENCE: u32 = 160;

/// Chooses the rung.
#[derive(Clone, Debug)]
pub(crate) struct Governor {
    budget: f64,
    keep: Keep,
    level: usize,
    /// What an interval cost on the rung of then.
    share: f64,
    /// CPU seconds of the targets since the last interval that counted.
    worked: f64,
    /// Socket calls were measured since then.
    is_new: bool,
    with_room: u32,
    rates_with_room: u32,
    patience: u32,
    /// Intervals that counted since the last change of the rung.
    on_rung: u32,
    /// The last change of the rung was one up.
    went_up: bool,
    probes: ProbeCosts,
}

/// What an interval led to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Decision {
    /// Too little ran, or is known, to say anything.
    Unknown,
    /// All stays as it is.
    Keep,
    /// Another rung.
    Change(Rung),
    /// Over budget, and nothing is left to drop.
    OverBudget,
}

impl Governor {
    /// `budget` is the share of the targets' CPU time that profiling may cost.
    pub fn new(budget: f64, keep: Keep) -> Self {
        Self {
            budget,
            keep,
            level: 0,
            share: 0.0,
            worked: 0.0,
            is_new: false,
            with_room: 0,
            rates_with_room: 0,
            patience: PATIENCE,
            on_rung: 0,
            went_up: false,
            probes: ProbeCosts::default(),
        }
    }

    /// From the next judgement on there is this budget.
    pub(crate) const fn set_budget(&mut self, budget: f64) {
        self.budget = budget;
    }

    /// The rung of now.
    pub(crate) fn rung(&self) -> Rung {
        rung_at(self.level)
    }

    /// What the last interval cost that said anything, as a share of CPU time: of the targets' where
    /// these run into hooks, of the host's where all do.
    pub(crate) const fn share(&self) -> f64 {
        self.share
    }

    fn cost(&self, spent: &Spent) -> f64 {
        spent.fixed() + spent.variable(spent.probes, self.rung())
    }

    /// What the variable part may cost.
    fn allowance(&self, spent: &Spent) -> f64 {
        (self.budget - spent.fixed()).max(self.budget * LEAST_PART)
    }

    /// Judges an interval.
    pub(crate) fn judge(&mut self, spent: &Spent) -> Decision {
        if !spent.is_enough() {
            return Decision::Unknown;
        }
        let probes = self.probes.note(self.level, spent);
        let spent = &Spent { probes, ..*spent };
        self.share = self.cost(spent);
        self.is_new |= spent.is_new;
        let counts = self.counts(spent);
        self.on_rung += u32::from(counts);
        if self.went_up && self.on_rung > LASTING {
            self.patience = PATIENCE;
        }
        let mut stay = Decision::Keep;
        if self.share > self.budget {
            match self.below(spent) {
                Some(_) if self.waits_for_a_window() => return Decision::Unknown,
                Some(level) => {
                    self.lose_patience();
                    return self.change_to(level);
                }
                None => stay = Decision::OverBudget,
            }
        }
        let above = self.level.checked_sub(1);
        match above.filter(|_| counts) {
            Some(above) if self.climbs(above, spent) => self.change_to(above),
            _ => stay,
        }
    }

    /// Whether an interval says what a rung above would cost: where targets were idle, it may cost
    /// anything. What they use little of adds up.
    fn counts(&mut self, spent: &Spent) -> bool {
        self.worked += spent.targets;
        let counts = self.worked >= LEAST_CPU_SECONDS || spent.booked >= 1.0;
        if counts {
            self.worked = 0.0;
        }
        counts
    }

    /// What windows cost is only known from one that is over: until the next, the load may have changed.
    fn waits_for_a_window(&self) -> bool {
        !self.rung().calls.is_always() && !self.is_new
    }

    /// Whether there has been room for the rung above for long enough.
    fn climbs(&mut self, above: usize, spent: &Spent) -> bool {
        let is_new = std::mem::take(&mut self.is_new);
        if !self.has_room(above, spent) {
            (self.with_room, self.rates_with_room) = (0, 0);
            return false;
        }
        self.with_room += 1;
        self.rates_with_room += u32::from(is_new);
        let climbs = self.with_room >= self.patience && self.rates_with_room >= LEAST_RATES;
        self.went_up |= climbs;
        climbs
    }

    /// The first rung below that may be cheap enough; each measurement may lead further. None
    /// where nothing is to be saved.
    fn below(&self, spent: &Spent) -> Option<usize> {
        let lowest = self.keep.lowest();
        let allowance = self.allowance(spent);
        let now = spent.variable(spent.probes, self.rung());
        if self.level >= lowest || now <= allowance {
            return None;
        }
        let expected = |level: usize| {
            let probes = self.probes.below(self.level, level, spent);
            spent.variable(probes, rung_at(level))
        };
        let saves = |level: &usize| expected(*level) <= now * LEAST_SAVED;
        (self.level + 1..lowest)
            .find(|level| expected(*level) <= allowance && saves(level))
            .or(Some(lowest))
            .filter(saves)
    }

    /// A rung up that did not last cost more than it told.
    fn lose_patience(&mut self) {
        if std::mem::take(&mut self.went_up) && self.on_rung <= LASTING {
            self.patience = (2 * self.patience).min(MOST_PATIENCE);
        }
    }

    fn has_room(&self, level: usize, spent: &Spent) -> bool {
        let probes = self.probes.above(level, spent);
        spent.variable(probes, rung_at(level)) <= self.allowance(spent) * ROOM
    }

    fn change_to(&mut self, level: usize) -> Decision {
        self.level = level;
        (self.with_room, self.rates_with_room) = (0, 0);
        (self.on_rung, self.is_new) = (0, false);
        Decision::Change(rung_at(level))
    }
}

#[cfg(test)]
mod tests;
