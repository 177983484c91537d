//! A figure with what it may be at least and at most.

/// Least, likely and greatest value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Range {
    /// At least.
    pub low: f64,
    /// Most likely.
    pub likely: f64,
    /// At most.
    pub high: f64,
}

impl Range {
    /// A value that is known to within `margin` on both sides.
    pub(crate) fn around(likely: f64, margin: f64) -> Self {
        Self {
            low: likely - margin,
            likely,
            high: likely + margin,
        }
    }

    /// Each of the three, changed alike by a function that grows.
    #[must_use]
    pub(crate) fn map(self, of: impl Fn(f64) -> f64) -> Self {
        Self {
            low: of(self.low),
            likely: of(self.likely),
            high: of(self.high),
        }
    }

    /// `factor` times; it must not be negative.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        self.map(|value| value * factor)
    }

    /// The sum of both: at worst all errors go one way.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            low: self.low + other.low,
            likely: self.likely + other.likely,
            high: self.high + other.high,
        }
    }

    /// What is left without the other: at worst the errors add up.
    #[must_use]
    pub(crate) fn minus(self, other: Self) -> Self {
        Self {
            low: self.low - other.high,
            likely: self.likely - other.likely,
            high: self.high - other.low,
        }
    }

    /// The least range around the same likely value that holds `other` too.
    #[must_use]
    pub(crate) fn widened_to(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            likely: self.likely,
            high: self.high.max(other.high),
        }
    }

    /// Cuts the upper end at a bound that is known by other means; never below the likely value.
    #[must_use]
    pub const fn bounded(self, bound: f64) -> Self {
        Self {
            high: self.high.min(bound).max(self.likely),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(low: f64, likely: f64, high: f64) -> Range {
        Range { low, likely, high }
    }

    #[test]
    fn errors_add_up_where_figures_are_taken_from_each_other() {
        let left = range(9.0, 10.0, 11.0).minus(range(1.0, 2.0, 4.0));
        assert_eq!(left, range(5.0, 8.0, 10.0));
        let sum = range(9.0, 10.0, 11.0).plus(range(1.0, 2.0, 4.0));
        assert_eq!(sum, range(10.0, 12.0, 15.0));
    }

    #[test]
    fn a_second_estimate_widens_but_does_not_move() {
        let widened = range(9.0, 10.0, 11.0).widened_to(range(7.0, 8.0, 10.0));
        assert_eq!(widened, range(7.0, 10.0, 11.0));
    }

    #[test]
    fn a_bound_cuts_the_upper_end_only() {
        assert_eq!(range(1.0, 2.0, 9.0).bounded(4.0), range(1.0, 2.0, 4.0));
        assert_eq!(range(1.0, 2.0, 3.0).bounded(4.0), range(1.0, 2.0, 3.0));
        assert_eq!(range(1.0, 2.0, 3.0).bounded(1.5), range(1.0, 2.0, 2.0));
    }
}
