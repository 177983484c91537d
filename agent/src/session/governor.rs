//! Keeps what profiling costs the targets within its budget. Pure.
//!
//! What is measured is a ladder: each rung costs less than the one above and says less.
//! Counts of connections, their bytes, ends and TIME_WAIT are exact on all of them.
//! Docs: accounting.md, "The budget".

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// When something is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Duty {
    /// Length of a window; zero for never.
    pub(crate) window: Duration,
    /// From the beginning of one window to that of the next; not longer than the
    /// window for always.
    pub period: Duration,
}

impl Duty {
    /// Attached all the time.
    pub(crate) const ALWAYS: Self = Self {
        window: Duration::from_secs(1),
        period: Duration::from_secs(1),
    };
    /// Not attached at all.
    pub(crate) const NEVER: Self = Self {
        window: Duration::ZERO,
        period: Duration::ZERO,
    };

    /// Share of the time in which the probes are attached.
    pub fn ratio(self) -> f64 {
        if self.window.is_zero() {
            return 0.0;
        }
        (self.window.as_secs_f64() / self.period.as_secs_f64()).min(1.0)
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rung {
    /// When the public-key steps of handshakes are probed.
    pub steps: Duty,
    /// Whether TLS libraries are probed. If not, handshakes are measured on their sockets.
    pub library: bool,
    /// When socket calls are seen. For a part of the time only: handshakes of the connections
    /// that open then stand for the others.
    pub calls: Duty,
}

/// A window of a second for steps: handshakes that begin and end in it are measured.
const fn steps(period: u64) -> Duty {
    Duty {
        window: Duration::from_secs(1),
        period: Duration::from_secs(period),
    }
}

/// Half a second for socket calls.
const fn calls(period: u64) -> Duty {
    Duty {
        window: Duration::from_millis(500),
        period: Duration::from_secs(period),
    }
}

const fn rung(steps: Duty, library: bool, calls: Duty) -> Rung {
    Rung {
        steps,
        library,
        calls,
    }
}

/// Most expensive first.
const LADDER: [Rung; 7] = [
    rung(Duty::ALWAYS, true, Duty::ALWAYS),
    rung(steps(10), true, Duty::ALWAYS),
    rung(steps(60), true, Duty::ALWAYS),
    rung(Duty::NEVER, false, Duty::ALWAYS),
    rung(Duty::NEVER, false, calls(2)),
    rung(Duty::NEVER, false, calls(8)),
    LOWEST,
];

const LOWEST: Rung = rung(Duty::NEVER, false, calls(32));

fn rung_at(level: usize) -> Rung {
    LADDER.get(level).copied().unwrap_or(LOWEST)
}

/// What the budget must not take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Keep {
    /// Connections, their bytes and TIME_WAIT: handshakes and turns may become estimates.
    #[default]
    Connections,
    /// Every handshake, measured in its library or on its socket.
    Handshakes,
    /// What probes in TLS libraries say of every handshake; steps may go.
    LibraryProbes,
}

impl Keep {
    /// The lowest rung.
    fn lowest(self) -> usize {
        let kept = |rung: &Rung| match self {
            Self::Connections => true,
            Self::Handshakes => rung.calls == Duty::ALWAYS,
            Self::LibraryProbes => rung.library,
        };
        // The first keeps everything.
        LADDER.iter().rposition(kept).unwrap_or_default()
    }
}

/// Less CPU time than this says nothing about a share.
const LEAST_CPU_SECONDS: f64 = 0.1;
/// Fewer connections than this say nothing of what probes cost for each.
const LEAST_OPENINGS: f64 = 20.0;
/// The probes that count handshakes are at least this part of all.
const COUNTING: f64 = 0.3;
/// Of these and of steps 1 s in 10, they are at least this part.
const FEW_STEPS: f64 = 0.8;
/// What is never taken out may exceed the budget alone. The rest may cost this part of it
/// all the same: to measure still less would save next to nothing.
const LEAST_PART: f64 = 0.2;
/// A rung down is taken when it leaves at most this part of what the one of now costs.
const LEAST_SAVED: f64 = 0.95;
/// A rung up is taken when it would cost at most this part of the budget.
const ROOM: f64 = 0.8;
/// Measurements in a row that must show that room, at first.
const PATIENCE: u32 = 5;
/// After a rung up that did not last so many measurements, twice as many must show room
/// before the next.
const LASTING: u32 = 30;
const MOST_PATIENCE: u32 = 160;

/// What was spent in an interval, in CPU seconds of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spent {
    /// By all processes, and by interrupts.
    pub host: f64,
    /// By the targets: services that have connections.
    pub(crate) targets: f64,
    /// Programs on socket calls, had they been seen all the time.
    pub calls: f64,
    /// Programs that stop clocks, had they been in all the time.
    pub switches: f64,
    /// Probes in libraries.
    pub probes: f64,
    /// Programs at changes of a connection's state.
    pub(crate) states: f64,
    /// All other programs.
    pub others: f64,
    /// Connections that were opened.
    pub(crate) openings: f64,
}

/// Chooses the rung.
#[derive(Clone, Debug)]
pub(crate) struct Governor {
    budget: f64,
    keep: Keep,
    level: usize,
    with_room: u32,
    patience: u32,
    /// Measurements since the last change of the rung.
    on_rung: u32,
    /// The last change of the rung was one up.
    went_up: bool,
    /// What probes cost for each connection on that rung, where it was tried.
    probes: [Option<f64>; LADDER.len()],
}

/// What a measurement led to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Decision {
    /// Too little ran to say anything.
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
    pub const fn new(budget: f64, keep: Keep) -> Self {
        Self {
            budget,
            keep,
            level: 0,
            with_room: 0,
            patience: PATIENCE,
            on_rung: 0,
            went_up: false,
            probes: [None; LADDER.len()],
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

    /// What an interval cost on the rung of now, as a share of CPU time: of the targets' where
    /// these run into hooks, of the host's where all do.
    pub fn share(&self, spent: &Spent) -> f64 {
        fixed(spent) + variable(spent, spent.probes, self.rung())
    }

    /// What the variable part may cost.
    fn allowance(&self, spent: &Spent) -> f64 {
        (self.budget - fixed(spent)).max(self.budget * LEAST_PART)
    }

    /// Judges an interval.
    pub fn judge(&mut self, spent: &Spent) -> Decision {
        if spent.host < LEAST_CPU_SECONDS {
            return Decision::Unknown;
        }
        if spent.openings >= LEAST_OPENINGS {
            let each = spent.probes / spent.openings;
            if let Some(known) = self.probes.get_mut(self.level) {
                *known = Some(each);
            }
        }
        self.on_rung = self.on_rung.saturating_add(1);
        let mut stay = Decision::Keep;
        if self.share(spent) > self.budget {
            if let Some(level) = self.below(spent) {
                self.lose_patience();
                return self.change_to(level);
            }
            stay = Decision::OverBudget;
        }
        let above = self.level.checked_sub(1);
        let Some(above) = above.filter(|above| self.has_room(*above, spent)) else {
            self.with_room = 0;
            return stay;
        };
        self.with_room += 1;
        if self.with_room < self.patience {
            return stay;
        }
        self.went_up = true;
        self.change_to(above)
    }

    /// The first rung below that may be cheap enough; each measurement may lead further. None
    /// where nothing is to be saved.
    fn below(&self, spent: &Spent) -> Option<usize> {
        let lowest = self.keep.lowest();
        let allowance = self.allowance(spent);
        let now = variable(spent, spent.probes, self.rung());
        if self.level >= lowest || now <= allowance {
            return None;
        }
        let expected = |level: usize| variable(spent, self.probes_on(level, spent), rung_at(level));
        (self.level + 1..lowest)
            .find(|level| expected(*level) <= allowance)
            .or(Some(lowest))
            .filter(|level| expected(*level) <= now * LEAST_SAVED)
    }

    /// What probes would cost on a rung below, at least.
    fn probes_on(&self, level: usize, spent: &Spent) -> f64 {
        let (all, few, rung) = (rung_at(0), self.rung(), rung_at(level));
        if !rung.library {
            return 0.0;
        }
        let Some(each) = self.known(0).filter(|_| self.level > 0) else {
            return spent.probes * COUNTING;
        };
        // Two rungs that differ in steps alone tell what these cost.
        let fewer = all.steps.ratio() - few.steps.ratio();
        let steps = (each * spent.openings - spent.probes) / fewer;
        let saved = steps * (few.steps.ratio() - rung.steps.ratio());
        spent.probes - saved.clamp(0.0, spent.probes * (1.0 - FEW_STEPS))
    }

    /// A rung up that did not last cost more than it told.
    fn lose_patience(&mut self) {
        if self.on_rung > LASTING {
            self.patience = PATIENCE;
        } else if self.went_up {
            self.patience = (2 * self.patience).min(MOST_PATIENCE);
        }
        self.went_up = false;
    }

    fn has_room(&self, level: usize, spent: &Spent) -> bool {
        let probes = self.probes_of_each(level) * spent.openings;
        variable(spent, probes, rung_at(level)) <= self.allowance(spent) * ROOM
    }

    /// What probes cost for each connection on that rung, at least, where it was not tried; 0
    /// where none was that has some.
    fn probes_of_each(&self, level: usize) -> f64 {
        let least = || self.known(0).filter(|_| rung_at(level).library);
        self.known(level)
            .or_else(|| least().map(|each| each * COUNTING))
            .unwrap_or_default()
    }

    /// What probes cost for each connection on that rung, where it was tried.
    fn known(&self, level: usize) -> Option<f64> {
        self.probes.get(level).copied().flatten()
    }

    fn change_to(&mut self, level: usize) -> Decision {
        self.level = level;
        self.with_room = 0;
        self.on_rung = 0;
        Decision::Change(rung_at(level))
    }
}

/// What no rung changes, as a share of CPU time: the whole host runs into most of it.
fn fixed(spent: &Spent) -> f64 {
    spent.states / callers(spent) + spent.others / spent.host
}

/// What a rung costs beside it.
fn variable(spent: &Spent, probes: f64, rung: Rung) -> f64 {
    let calls = rung.calls.ratio();
    (probes + spent.calls * calls) / callers(spent) + spent.switches * calls / spent.host
}

/// CPU seconds of those with connections. Where targets hardly run, others do the socket calls.
const fn callers(spent: &Spent) -> f64 {
    if spent.targets < LEAST_CPU_SECONDS {
        spent.host
    } else {
        spent.targets
    }
}

#[cfg(test)]
mod tests;
