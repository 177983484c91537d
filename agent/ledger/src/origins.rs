//! Where sessions came from that clients brought, and how old they were.

use std::collections::BTreeMap;

use tlsprof_evidence::hello::{Attempt, Facts, Giver};

use super::Distribution;
use super::since::sums;

/// Sessions of one origin.
#[derive(Clone, Debug, Default)]
pub struct Brought {
    /// How many.
    pub count: u64,
    /// Age of those whose issue was seen.
    pub ages: Distribution,
}

/// Sessions that were accepted or refused, by who had given them. Those whose giver was
/// not seen are in none.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    accepted: BTreeMap<Giver, Brought>,
    refused: BTreeMap<Giver, Brought>,
}

sums!(Brought: count, ages);
sums!(Origins: accepted, refused);

impl Origins {
    pub(super) fn record(&mut self, facts: &Facts) {
        let kept = match facts.attempt() {
            Attempt::Accepted => &mut self.accepted,
            Attempt::Refused => &mut self.refused,
            Attempt::NotOffered | Attempt::Unknown => return,
        };
        let Some(origin) = facts.origin else {
            return;
        };
        let brought = kept.entry(origin.giver).or_default();
        brought.count += 1;
        if let Some(age) = origin.age {
            brought.ages.record(age);
        }
    }

    /// Sessions of that giver that were accepted; None where there was none.
    pub fn accepted(&self, giver: Giver) -> Option<&Brought> {
        self.accepted.get(&giver)
    }

    /// Those that were refused.
    pub fn refused(&self, giver: Giver) -> Option<&Brought> {
        self.refused.get(&giver)
    }
}
