//! Distribution of a time over many handshakes, in bounded memory.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::Moments;
use super::limits::bounded_long_nanos;
use super::since::Since;

/// Shorter times are recorded as this one. No handshake takes so little.
const SHORTEST: u64 = 100;
/// Two significant digits: quantiles are exact to 1%.
const SIGNIFICANT_DIGITS: u8 = 2;

/// Distribution of a time: exact count, mean and largest; quantiles to 1%.
#[derive(Clone, Debug)]
pub struct Distribution {
    histogram: Histogram<u64>,
    moments: Moments,
    max: u64,
}

impl Default for Distribution {
    #[expect(clippy::expect_used, reason = "the bounds are constants, and valid")]
    fn default() -> Self {
        // It grows as longer times come: most need a tenth of the full range.
        let mut histogram = Histogram::new_with_bounds(SHORTEST, 2 * SHORTEST, SIGNIFICANT_DIGITS)
            .expect("constant bounds");
        histogram.auto(true);
        Self {
            histogram,
            moments: Moments::default(),
            max: 0,
        }
    }
}

/// The largest is known to 1% where it came before the earlier state as well.
impl Since for Distribution {
    fn since(&self, earlier: &Self) -> Self {
        let mut new = self.clone();
        // An error: the earlier one has what this one has not. It is no state of this one.
        if new.histogram.subtract(&earlier.histogram).is_err() {
            return self.clone();
        }
        if self.max <= earlier.max {
            new.max = new.histogram.max().min(self.max);
        }
        new.moments = self.moments.since(&earlier.moments);
        new
    }

    fn is_zero(&self) -> bool {
        self.histogram.is_empty()
    }
}

impl Distribution {
    /// Adds one time. Out of 100 ns to 30 days it counts as the nearer of the two.
    pub fn record(&mut self, time: Duration) {
        let nanos = bounded_long_nanos(time);
        // The histogram grows to hold any of these, so that this is no error.
        if self.histogram.record(nanos.max(SHORTEST)).is_ok() {
            self.moments.record(time);
            self.max = self.max.max(nanos);
        }
    }

    /// How many times were recorded.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Arithmetic mean; zero when nothing was recorded.
    pub fn mean(&self) -> Duration {
        self.moments.mean_time()
    }

    /// Standard error of the mean, in seconds; None for less than two times.
    pub fn mean_error(&self) -> Option<f64> {
        self.moments.standard_error()
    }

    /// The largest time.
    pub const fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// The time that the share `quantile` (0 to 1) of all does not exceed;
    /// zero when nothing was recorded.
    pub fn quantile(&self, quantile: f64) -> Duration {
        let nanos = self.histogram.value_at_quantile(quantile);
        // The histogram answers with the upper end of a bucket.
        Duration::from_nanos(nanos.min(self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_to_one_percent() {
        let mut distribution = Distribution::default();
        for micros in 1..=100_000 {
            distribution.record(Duration::from_micros(micros));
        }
        for (quantile, exact) in [(0.5, 0.05), (0.9, 0.09), (0.99, 0.099)] {
            let got = distribution.quantile(quantile).as_secs_f64();
            assert!((got / exact - 1.0).abs() < 0.01, "{quantile}: {got}");
        }
        assert_eq!(distribution.max(), Duration::from_millis(100));
        assert_eq!(distribution.mean(), Duration::from_nanos(50_000_500));
    }

    #[test]
    fn a_time_out_of_range_is_clamped() {
        let mut distribution = Distribution::default();
        distribution.record(Duration::ZERO);
        distribution.record(Duration::MAX);
        distribution.record(Duration::from_millis(1));
        assert_eq!(distribution.count(), 3);
        assert_eq!(distribution.max(), Duration::from_secs(30 * 24 * 3600));
    }

    #[test]
    fn a_connection_may_last_for_days() {
        let mut distribution = Distribution::default();
        let day = Duration::from_secs(24 * 3600);
        for days in 1..=9 {
            distribution.record(day * days);
        }
        assert_eq!(
            (distribution.mean(), distribution.max()),
            (day * 5, day * 9)
        );
        let median = distribution.quantile(0.5).as_secs_f64() / day.as_secs_f64();
        assert!((median / 5.0 - 1.0).abs() < 0.01, "{median}");
    }

    #[test]
    fn an_empty_distribution_is_all_zero() {
        let distribution = Distribution::default();
        assert_eq!(distribution.mean(), Duration::ZERO);
        assert_eq!(distribution.quantile(0.99), Duration::ZERO);
    }
}
