//! What a change saves of several kinds of handshake.

use super::{CostSource, Prediction, Range, Saving};
use crate::subject::Subject;

/// What is said after the method of a sum that leaves some out.
pub(crate) const LOWER_BOUND: &str =
    " This is a lower bound: the cost of some kinds of these handshakes is unknown.";

/// Savings of several kinds of handshake together. Kinds whose cost is unknown are left out.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    cpu: Range,
    /// The weakest; None where nothing is known.
    source: Option<CostSource>,
    lacks_some: bool,
}

impl Sum {
    /// What each of so many handshakes would save.
    pub(crate) fn add(&mut self, each: Option<(Range, CostSource)>, number: f64) {
        match each {
            Some((each, source)) => {
                self.cpu = self.cpu.plus(each.times(number));
                self.source = self.source.max(Some(source));
            }
            None => self.lacks_some = true,
        }
    }

    /// Their saving, if it is worth a change. Unknown for a `reason` if only kinds that were left out
    /// may make it so: all kinds save `bound` CPU seconds at most.
    pub(crate) fn predict(
        &self,
        subject: &Subject<'_>,
        bound: f64,
        method: impl FnOnce(CostSource) -> String,
        reason: impl FnOnce() -> String,
    ) -> Option<Prediction> {
        let is_worth = subject.worth(self.cpu.likely);
        if let Some(source) = self.source.filter(|_| is_worth) {
            let mut method = method(source);
            if self.lacks_some {
                method.push_str(LOWER_BOUND);
            }
            return Some(Prediction::Saving(Saving {
                is_lower_bound: self.lacks_some,
                ..subject.saving(self.cpu, source, method)
            }));
        }
        (self.lacks_some && subject.worth(bound)).then(|| Prediction::Unknown(reason()))
    }
}
