//! Mean of a time over handshakes that are alike, and how sure that mean is.

use std::time::Duration;

use super::limits::bounded_long_nanos;
use super::since::sums;

/// Standard errors on each side of an estimate that hold the truth with 95%.
pub(crate) const MARGIN: f64 = 1.96;

/// Count, sum and sum of squares: all that a mean and its error need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    count: u64,
    /// Nanoseconds. 64 bits hold 7,000 times of 30 days.
    sum: u128,
    /// Square nanoseconds. 5 * 10^7 times of 30 days fit, and 10^13 of an hour.
    squares: u128,
}

sums!(Moments: count, sum, squares);

impl Moments {
    /// Adds one time; over 30 days it counts as 30 days.
    pub fn record(&mut self, time: Duration) {
        let nanos = u128::from(bounded_long_nanos(time));
        self.count += 1;
        self.sum = self.sum.saturating_add(nanos);
        self.squares = self.squares.saturating_add(nanos * nanos);
    }

    /// The two together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            sum: self.sum.saturating_add(other.sum),
            squares: self.squares.saturating_add(other.squares),
        }
    }

    /// How many times.
    pub const fn count(self) -> u64 {
        self.count
    }

    /// Arithmetic mean in seconds; 0 for none.
    pub fn mean(self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.sum as f64 / self.count as f64 / 1e9
    }

    /// The mean as a time, cut to whole nanoseconds; zero for none.
    pub(crate) fn mean_time(self) -> Duration {
        let mean = self.sum.checked_div(self.count.into());
        mean.map_or(Duration::ZERO, Duration::from_nanos_u128)
    }

    /// Standard error of the mean in seconds; None for less than two times.
    pub(crate) fn standard_error(self) -> Option<f64> {
        if self.count < 2 {
            return None;
        }
        let count = self.count as f64;
        let mean = self.sum as f64 / count;
        // Rounding can put it a little below zero.
        let variance = (self.squares as f64 / count - mean * mean).max(0.0);
        Some((variance / (count - 1.0)).sqrt() / 1e9)
    }

    /// Half the 95% range of the mean in seconds; None for less than two times.
    pub fn margin(self) -> Option<f64> {
        Some(MARGIN * self.standard_error()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(micros: &[u64]) -> Moments {
        let mut moments = Moments::default();
        for &one in micros {
            moments.record(Duration::from_micros(one));
        }
        moments
    }

    #[test]
    fn mean_and_standard_error_are_those_of_the_textbook() {
        let moments = of(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert!((moments.mean() - 5e-6).abs() < 1e-12);
        // Sample deviation sqrt(32/7) us, by sqrt(8).
        let error = moments.standard_error().unwrap_or_default();
        assert!((error - 0.7559e-6).abs() < 1e-10, "{error}");
    }

    #[test]
    fn one_time_says_nothing_of_the_error() {
        assert_eq!(of(&[3]).standard_error(), None);
        assert_eq!(of(&[]).standard_error(), None);
        assert!(of(&[]).mean().abs() < f64::EPSILON);
        assert_eq!(of(&[3, 3]).standard_error(), Some(0.0));
    }

    #[test]
    fn two_sets_add_up() {
        assert_eq!(of(&[1, 2]).plus(of(&[3])), of(&[1, 2, 3]));
    }
}
