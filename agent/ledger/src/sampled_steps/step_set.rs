//! Sets of steps.

use tlsprof_common::Step;

/// One step, or several that cannot be separated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepSet(u8);

impl StepSet {
    /// That step alone.
    pub const fn of(step: Step) -> Self {
        Self(1 << step as u8)
    }

    pub(super) const fn with(self, step: Step) -> Self {
        Self(self.0 | 1 << step as u8)
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether that step is one of them.
    pub const fn has(self, step: Step) -> bool {
        self.0 & Self::of(step).0 != 0
    }

    /// Its steps, in the order in which reports show them.
    pub fn steps(self) -> impl Iterator<Item = Step> {
        Step::ALL.into_iter().filter(move |step| self.has(*step))
    }

    /// Its name in metrics: `key_exchange`, `key_exchange+signing`.
    pub fn label(self) -> String {
        let labels: Vec<&str> = self.steps().map(Step::label).collect();
        labels.join("+")
    }
}
