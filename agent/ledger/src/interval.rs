//! How sure a figure from samples is.
//!
//! Both are score intervals: they keep their coverage for few samples and near 0 and
//! 1, where the usual `p ± 1.96 sqrt(p(1-p)/n)` does not.

/// Two-sided 95% of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Limits between which the true value is in 95% of cases.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// Lower limit.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
}

impl Interval {
    /// Both limits multiplied.
    #[must_use]
    pub fn scaled(self, by: f64) -> Self {
        Self {
            low: self.low * by,
            high: self.high * by,
        }
    }
}

/// Of a share that was estimated from so many samples: binomial, by Wilson (1927). This is
/// it for CPU time by activity, as the total is the kernel's and exact: only the share
/// is estimated. 0 to 1 without samples.
pub fn of_share(share: f64, samples: f64) -> Interval {
    if samples <= 0.0 {
        return Interval {
            low: 0.0,
            high: 1.0,
        };
    }
    let (n, p) = (samples, share.clamp(0.0, 1.0));
    let spread = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let centre = p + Z * Z / (2.0 * n);
    let scale = 1.0 + Z * Z / n;
    // The ends are exact: rounding must not leave a share below 0 or above 1.
    let low = (centre - spread) / scale;
    let high = (centre + spread) / scale;
    Interval {
        low: if p <= 0.0 { 0.0 } else { low },
        high: if p >= 1.0 { 1.0 } else { high },
    }
}

/// Of the number of samples to expect where `hits` came: Poisson. This is it where no
/// total is known, as for softirq.
#[allow(clippy::cast_precision_loss, reason = "statistics")]
pub fn of_count(hits: u64) -> Interval {
    let n = hits as f64;
    let centre = n + Z * Z / 2.0;
    let spread = Z * (n + Z * Z / 4.0).sqrt();
    Interval {
        low: if hits == 0 { 0.0 } else { centre - spread },
        high: centre + spread,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: Interval, low: f64, high: f64) -> bool {
        (found.low - low).abs() < 5e-5 && (found.high - high).abs() < 5e-5
    }

    #[test]
    fn shares_have_the_limits_of_wilson() {
        // Newcombe 1998 (Statistics in Medicine 17:857), table I, method 3.
        let of = |hits: f64, all: f64| of_share(hits / all, all);
        assert!(close(of(81.0, 263.0), 0.2553, 0.3662));
        assert!(close(of(15.0, 148.0), 0.0624, 0.1605));
        assert!(close(of(0.0, 20.0), 0.0, 0.1611));
        assert!(close(of(1.0, 29.0), 0.0061, 0.1718));
        assert!(close(of(29.0, 29.0), 0.8830, 1.0));
    }

    #[test]
    fn shares_without_samples_may_be_anything() {
        assert!(close(of_share(0.0, 0.0), 0.0, 1.0));
    }

    #[test]
    fn counts_have_the_limits_of_the_score_test() {
        // The solutions of (limit - n)^2 = z^2 limit.
        assert!(close(of_count(0), 0.0, 3.8415));
        assert!(close(of_count(10), 5.4320, 18.4095));
        assert!(close(of_count(100), 82.2272, 121.6143));
    }

    #[test]
    fn more_samples_make_it_narrower() {
        let width = |n: f64| of_share(0.25, n).high - of_share(0.25, n).low;
        assert!(width(40.0) > 1.9 * width(160.0));
        assert!(width(160.0) > 1.9 * width(640.0));
    }

    /// The intervals hold what they say: over all outcomes of a binomial experiment,
    /// weighted by their probability, the true share is inside about 95% of the time.
    #[test]
    fn coverage_is_near_95_percent() {
        let n = 100_u64;
        for share in [0.02_f64, 0.1, 0.34, 0.5, 0.9] {
            let mut probability = (1.0 - share).powi(100);
            let mut covered = 0.0;
            for hits in 0..=n {
                let (k, odds) = (hits as f64, share / (1.0 - share));
                let limits = of_share(k / n as f64, n as f64);
                if (limits.low..=limits.high).contains(&share) {
                    covered += probability;
                }
                probability *= (n as f64 - k) / (k + 1.0) * odds;
            }
            assert!((0.92..0.99).contains(&covered), "{share}: {covered}");
        }
    }
}
