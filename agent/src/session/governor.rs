//! Keeps the cost of probes on the targets within its budget. Pure.

use std::time::Duration;

/// When a group of probes is attached.
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

/// Duties of the step probes, most expensive first. What remains at the last are the
/// few probes that count and time handshakes.
const LEVELS: [Duty; 3] = [
    Duty::ALWAYS,
    Duty {
        window: Duration::from_secs(1),
        period: Duration::from_secs(10),
    },
    Duty {
        window: Duration::from_secs(1),
        period: Duration::from_secs(60),
    },
];

/// Less CPU time of the targets than this says nothing about a share.
const LEAST_CPU_SECONDS: f64 = 0.2;
/// A level down in cost is left again only when there is much room: a tenth of
/// the probes costs a tenth, so the level above would cost up to ten times this.
const ROOM: f64 = 0.05;
/// Measurements in a row that must show that room.
const PATIENCE: u32 = 12;

/// Chooses the duty of the step probes.
#[derive(Clone, Debug)]
pub struct Governor {
    budget: f64,
    level: usize,
    with_room: u32,
}

/// What a measurement led to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// All stays as it is.
    Keep,
    /// The step probes get this duty.
    Change(Duty),
    /// Over budget, and nothing is left to drop.
    OverBudget,
}

impl Governor {
    /// `budget` is the share of the targets' CPU time that probes may cost.
    pub const fn new(budget: f64) -> Self {
        Self {
            budget,
            level: 0,
            with_room: 0,
        }
    }

    /// From the next judgement on there is this budget.
    pub const fn set_budget(&mut self, budget: f64) {
        self.budget = budget;
    }

    /// Judges an interval in which probes cost `probe_seconds` of `cpu_seconds`
    /// that the targets used.
    pub fn judge(&mut self, probe_seconds: f64, cpu_seconds: f64) -> Decision {
        if cpu_seconds < LEAST_CPU_SECONDS {
            return Decision::Keep;
        }
        let share = probe_seconds / cpu_seconds;
        if share > self.budget {
            self.with_room = 0;
            return self
                .change_to(self.level + 1)
                .unwrap_or(Decision::OverBudget);
        }
        self.with_room = if share < self.budget * ROOM {
            self.with_room + 1
        } else {
            0
        };
        if self.with_room < PATIENCE || self.level == 0 {
            return Decision::Keep;
        }
        self.with_room = 0;
        self.change_to(self.level - 1).unwrap_or(Decision::Keep)
    }

    fn change_to(&mut self, level: usize) -> Option<Decision> {
        let duty = LEVELS.get(level)?;
        self.level = level;
        Some(Decision::Change(*duty))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: f64 = 0.01;

    #[test]
    fn within_the_budget_nothing_changes() {
        let mut governor = Governor::new(BUDGET);
        for _ in 0..100 {
            assert_eq!(governor.judge(0.009, 1.0), Decision::Keep);
        }
    }

    #[test]
    fn over_the_budget_the_duty_falls_level_by_level() {
        let mut governor = Governor::new(BUDGET);
        assert_eq!(governor.judge(0.02, 1.0), Decision::Change(LEVELS[1]));
        assert_eq!(governor.judge(0.02, 1.0), Decision::Change(LEVELS[2]));
        assert_eq!(governor.judge(0.02, 1.0), Decision::OverBudget);
    }

    #[test]
    fn an_idle_target_proves_nothing() {
        let mut governor = Governor::new(BUDGET);
        assert_eq!(governor.judge(0.1, 0.1), Decision::Keep);
        assert_eq!(governor.judge(0.0, 0.0), Decision::Keep);
    }

    #[test]
    fn with_room_for_a_minute_the_duty_rises_again() {
        let mut governor = Governor::new(BUDGET);
        governor.judge(0.02, 1.0);
        for _ in 1..PATIENCE {
            assert_eq!(governor.judge(0.0001, 1.0), Decision::Keep);
        }
        assert_eq!(governor.judge(0.0001, 1.0), Decision::Change(LEVELS[0]));
    }

    #[test]
    fn a_duty_is_a_share_of_the_time() {
        assert!((Duty::ALWAYS.ratio() - 1.0).abs() < f64::EPSILON);
        assert!((LEVELS[1].ratio() - 0.1).abs() < f64::EPSILON);
        assert!(Duty::NEVER.ratio().abs() < f64::EPSILON);
    }
}
