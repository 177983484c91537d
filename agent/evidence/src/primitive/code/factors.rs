//! Constants that wide multiplications take as a factor: what a number wraps around at, and the words of a prime by
//! which Montgomery's reduction multiplies, word by word.

use std::collections::BTreeMap;

use super::step::{Does, Flow, Registers, Step};

const SMALL: u64 = 16;

/// How often each constant is a factor.
#[derive(Debug, Default)]
pub(super) struct Factors {
    times: BTreeMap<u64, usize>,
    /// By register. Follows the order in memory, not branches.
    kept: BTreeMap<Registers, u64>,
}

impl Factors {
    /// Whether the next instruction is a wide multiplication by a constant.
    pub(super) fn note(&mut self, one: &Step) -> bool {
        let factor = match one.does {
            Does::Multiply(of) => self.among(of),
            _ => None,
        };
        if let Some(factor) = factor {
            *self.times.entry(factor).or_default() += 1;
        }
        let value = one.number.or_else(|| self.among(one.from));
        let changed = one.loads | one.copies | one.changes;
        if self.among(changed).is_some() {
            self.kept.retain(|register, _| register & changed == 0);
        }
        if matches!(one.flow, Flow::Call(_)) {
            self.kept.clear();
        }
        if let Some(value) = value
            && one.copies != 0
        {
            self.kept.insert(one.copies, value);
        }
        factor.is_some()
    }

    fn among(&self, those: Registers) -> Option<u64> {
        let mut kept = self.kept.iter();
        let found = kept.find(|(register, _)| *register & those != 0);
        found.map(|(_, number)| *number)
    }

    /// Whether a register holds that number.
    pub(super) fn keep(&self, number: u64) -> bool {
        self.kept.values().any(|one| *one == number)
    }

    pub(super) fn times(&self, factor: u64) -> usize {
        self.times.get(&factor).copied().unwrap_or_default()
    }

    /// Multiplications by any constant.
    pub(super) fn all(&self) -> usize {
        self.times.values().sum()
    }

    /// Whether there are no others, but for small ones: doubling a point multiplies by 3, 9 and 12 in s2n-bignum.
    pub(super) fn are_among(&self, those: &[u64]) -> bool {
        let mut others = self.times.keys().filter(|one| **one >= SMALL);
        others.all(|one| those.contains(one))
    }
}
