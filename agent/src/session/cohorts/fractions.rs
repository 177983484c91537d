//! Fractions that add up to whole things. Pure.

/// Sums of fractions are off by less than that.
const ROUNDING: f64 = 1e-6;

/// What is left of fractions once the whole ones are taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fractions(f64);

impl Fractions {
    pub(super) fn add(&mut self, part: f64) {
        self.0 += part;
    }

    /// Takes all whole ones.
    pub(super) fn take_whole(&mut self) -> f64 {
        let whole = (self.0 + ROUNDING).floor();
        self.0 -= whole;
        whole
    }

    /// Takes a whole one, if there is one.
    pub(super) fn take_one(&mut self) -> bool {
        let is_whole = self.0 >= 1.0 - ROUNDING;
        if is_whole {
            self.0 -= 1.0;
        }
        is_whole
    }
}
