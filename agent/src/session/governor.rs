//! Keeps what profiling costs the targets within its budget. Pure.
//!
//! What is measured is a ladder: each rung costs less than the one above and says less.
//! Counts of connections, their bytes, ends and TIME_WAIT are exact on all of them.
//! Docs: accounting.md, "The budget".

use std::time::Duration;

/// When something is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duty {
    /// Length of a window; zero for never.
    pub window: Duration,
    /// From the beginning of one window to that of the next; not longer than the
    /// window for always.
    pub period: Duration,
}

impl Duty {
    /// Attached all the time.
    pub const ALWAYS: Self = Self {
        window: Duration::from_secs(1),
        period: Duration::from_secs(1),
    };
    /// Not attached at all.
    pub const NEVER: Self = Self {
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
pub struct Rung {
    /// When the public-key steps of handshakes are probed.
    pub steps: Duty,
    /// Whether TLS libraries are probed. Without, socket calls tell of handshakes.
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

/// Dearest first.
const LADDER: [Rung; 7] = [
    rung(Duty::ALWAYS, true, Duty::ALWAYS),
    rung(steps(10), true, Duty::ALWAYS),
    rung(steps(60), true, Duty::ALWAYS),
    rung(Duty::NEVER, false, Duty::ALWAYS),
    rung(Duty::NEVER, false, calls(2)),
    rung(Duty::NEVER, false, calls(8)),
    rung(Duty::NEVER, false, calls(32)),
];

/// Less CPU time than this says nothing about a share.
const LEAST_CPU_SECONDS: f64 = 0.1;
/// Fewer connections than this say nothing of what probes cost for each.
const LEAST_OPENINGS: f64 = 20.0;
/// The probes that count handshakes are at least this part of all.
const COUNTING: f64 = 0.3;
/// A rung up is taken when it would cost at most this part of the budget.
const ROOM: f64 = 0.8;
/// Measurements in a row that must show that room.
const PATIENCE: u32 = 5;

/// What was spent in an interval, in CPU seconds of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// By all processes, and by interrupts.
    pub host: f64,
    /// By the targets: services that have connections.
    pub targets: f64,
    /// Programs on socket calls, had they been seen all the time.
    pub calls: f64,
    /// Probes in libraries.
    pub probes: f64,
    /// All other programs.
    pub others: f64,
    /// Connections that were opened.
    pub openings: f64,
}

/// Chooses the rung.
#[derive(Clone, Debug)]
pub struct Governor {
    budget: f64,
    level: usize,
    with_room: u32,
    /// What probes cost for each connection on that rung, where it was tried.
    probes: [Option<f64>; LADDER.len()],
}

/// What a measurement led to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// All stays as it is.
    Keep,
    /// Another rung.
    Change(Rung),
    /// Over budget, and nothing is left to drop.
    OverBudget,
}

impl Governor {
    /// `budget` is the share of the targets' CPU time that profiling may cost.
    pub const fn new(budget: f64) -> Self {
        Self {
            budget,
            level: 0,
            with_room: 0,
            probes: [None; LADDER.len()],
        }
    }

    /// From the next judgement on there is this budget.
    pub const fn set_budget(&mut self, budget: f64) {
        self.budget = budget;
    }

    /// The rung of now.
    pub const fn rung(&self) -> Rung {
        LADDER[self.level]
    }

    /// What an interval cost on the rung of now, as a share of CPU time: of the targets' where
    /// only these run into hooks, else of the host's.
    pub fn share(&self, spent: &Spent) -> f64 {
        share(spent, spent.probes, LADDER[self.level])
    }

    /// Judges an interval.
    pub fn judge(&mut self, spent: &Spent) -> Decision {
        if spent.host < LEAST_CPU_SECONDS {
            return Decision::Keep;
        }
        if spent.openings >= LEAST_OPENINGS {
            self.probes[self.level] = Some(spent.probes / spent.openings);
        }
        if self.share(spent) > self.budget {
            self.with_room = 0;
            return self.climb_down(spent);
        }
        let above = self.level.checked_sub(1);
        let Some(above) = above.filter(|above| self.has_room(*above, spent)) else {
            self.with_room = 0;
            return Decision::Keep;
        };
        self.with_room += 1;
        if self.with_room < PATIENCE {
            return Decision::Keep;
        }
        self.change_to(above)
    }

    /// To the first rung below that may be cheap enough; each measurement may lead further.
    fn climb_down(&mut self, spent: &Spent) -> Decision {
        let lowest = LADDER.len() - 1;
        if self.level == lowest {
            return Decision::OverBudget;
        }
        let fits = |level: &usize| {
            let rung = LADDER[*level];
            let probes = if rung.library { COUNTING } else { 0.0 };
            share(spent, spent.probes * probes, rung) <= self.budget
        };
        let level = (self.level + 1..lowest).find(fits).unwrap_or(lowest);
        self.change_to(level)
    }

    fn has_room(&self, level: usize, spent: &Spent) -> bool {
        let probes = self.probes[level].unwrap_or_default() * spent.openings;
        share(spent, probes, LADDER[level]) <= self.budget * ROOM
    }

    fn change_to(&mut self, level: usize) -> Decision {
        self.level = level;
        self.with_room = 0;
        Decision::Change(LADDER[level])
    }
}

/// Where targets hardly run, others do the socket calls.
fn share(spent: &Spent, probes: f64, rung: Rung) -> f64 {
    let callers = match spent.targets < LEAST_CPU_SECONDS {
        true => spent.host,
        false => spent.targets,
    };
    spent.others / spent.host + (probes + spent.calls * rung.calls.ratio()) / callers
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: f64 = 0.01;
    const WITHIN: Spent = Spent {
        host: 1.0,
        targets: 1.0,
        calls: 0.002,
        probes: 0.004,
        others: 0.001,
        openings: 100.0,
    };

    fn change(level: usize) -> Decision {
        Decision::Change(LADDER[level])
    }

    #[test]
    fn each_rung_costs_less_than_the_one_above() {
        for pair in LADDER.windows(2) {
            assert!(pair[1].steps.ratio() <= pair[0].steps.ratio());
            assert!(pair[1].library <= pair[0].library);
            assert!(pair[1].calls.ratio() <= pair[0].calls.ratio());
            assert_ne!(pair[1], pair[0]);
        }
    }

    #[test]
    fn within_the_budget_nothing_changes() {
        let mut governor = Governor::new(BUDGET);
        for _ in 0..100 {
            assert_eq!(governor.judge(&WITHIN), Decision::Keep);
        }
    }

    #[test]
    fn dear_probes_go_step_by_step() {
        let mut governor = Governor::new(BUDGET);
        let dear = Spent {
            probes: 0.02,
            ..WITHIN
        };
        assert_eq!(governor.judge(&dear), change(1));
        assert_eq!(governor.judge(&dear), change(2));
        assert_eq!(governor.judge(&dear), change(3));
    }

    #[test]
    fn dear_socket_calls_lead_at_once_to_the_rung_that_fits() {
        let mut governor = Governor::new(BUDGET);
        let dear = Spent {
            calls: 0.06,
            ..WITHIN
        };
        assert_eq!(governor.judge(&dear), change(5));
        let dearer = Spent {
            calls: 0.3,
            ..WITHIN
        };
        assert_eq!(governor.judge(&dearer), change(6));
        let too_dear = Spent {
            others: 0.02,
            ..dearer
        };
        assert_eq!(governor.judge(&too_dear), Decision::OverBudget);
    }

    #[test]
    fn an_idle_target_proves_nothing() {
        let mut governor = Governor::new(BUDGET);
        let idle = Spent {
            host: 0.05,
            others: 0.05,
            ..Spent::default()
        };
        assert_eq!(governor.judge(&idle), Decision::Keep);
        assert_eq!(governor.judge(&Spent::default()), Decision::Keep);
    }

    #[test]
    fn a_bystander_counts_where_no_target_runs() {
        let mut governor = Governor::new(BUDGET);
        let bystander = Spent {
            host: 1.0,
            calls: 0.05,
            ..Spent::default()
        };
        assert_eq!(governor.judge(&bystander), change(5));
        let beside_much_else = Spent {
            host: 20.0,
            ..bystander
        };
        let mut governor = Governor::new(BUDGET);
        assert_eq!(governor.judge(&beside_much_else), Decision::Keep);
    }

    #[test]
    fn a_rung_up_is_taken_when_it_fits_by_what_it_cost_before() {
        let mut governor = Governor::new(BUDGET);
        let storm = Spent {
            host: 1.0,
            targets: 1.0,
            calls: 0.002,
            probes: 0.02,
            others: 0.001,
            openings: 1000.0,
        };
        assert_eq!(governor.judge(&storm), change(1));
        let calmer = |openings: f64| Spent {
            probes: 8e-6 * openings,
            openings,
            ..storm
        };
        // Steps all the time would cost 20 us each: too much for 300.
        for _ in 0..2 * PATIENCE {
            assert_eq!(governor.judge(&calmer(300.0)), Decision::Keep);
        }
        for _ in 1..PATIENCE {
            assert_eq!(governor.judge(&calmer(200.0)), Decision::Keep);
        }
        assert_eq!(governor.judge(&calmer(200.0)), change(0));
    }

    #[test]
    fn a_duty_is_a_share_of_the_time() {
        assert!((Duty::ALWAYS.ratio() - 1.0).abs() < f64::EPSILON);
        assert!((steps(10).ratio() - 0.1).abs() < f64::EPSILON);
        assert!((calls(8).ratio() - 0.0625).abs() < f64::EPSILON);
        assert!(Duty::NEVER.ratio().abs() < f64::EPSILON);
    }
}
