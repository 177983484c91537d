//! How sure a difference between runs is. `docs/compare.md` explains the model in words.
//!
//! A figure of one run has two errors. The **counting error** comes from what the figure
//! was counted from: CPU samples, handshakes, requests. The **spread between runs** comes
//! from all that makes two runs of the same build under the same load differ: caches, clock
//! rates, neighbours. Of the spread there is an assumption, [`Noise`], which repeats correct.

use statrs::distribution::{ContinuousCDF as _, Normal, StudentsT};

/// The probability that all verdicts are right together is at least this.
pub(super) const CONFIDENCE: f64 = 0.95;
/// Beyond so many degrees of freedom, Student's distribution is as good as normal: its
/// quantiles are larger by less than 1%.
const MANY: f64 = 500.0;
/// What repeats that spread more than assumed are worth at least, in degrees of freedom.
const FEWEST: f64 = 4.0;

/// On what scale runs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Positive figures, by their logarithm: a change is a ratio.
    Ratio,
    /// Shares of 1: a change is a difference.
    Share,
}

/// The assumed spread between runs, as a relative standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Noise {
    /// Standard deviation as a share of the figure: 0.03 for 3%.
    pub(crate) spread: f64,
    /// How many degrees of freedom the assumption is worth against observed repeats.
    pub(crate) weight: f64,
}

/// What one run says of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure as it is shown.
    pub(crate) shown: f64,
    /// On its scale: its logarithm, or the share.
    value: f64,
    /// Variance from counting, on the scale.
    variance: f64,
    /// What a relative change of the figure, or of its odds, is on the scale; less where
    /// runs differ less by themselves.
    unit: f64,
}

/// By how much less counts differ between runs than CPU times: a request is a request,
/// however busy the machine.
const COUNTED: f64 = 0.2;

impl Estimate {
    /// A positive figure whose counting error is `variance`, relative and squared.
    /// `shown` may be zero where `value` was put a little above. None where the figure is
    /// not positive and finite.
    pub fn ratio(shown: f64, value: f64, variance: f64) -> Option<Self> {
        let sound = value.is_normal() && value > 0.0 && variance.is_finite() && variance >= 0.0;
        (sound && shown.is_finite()).then(|| Self {
            shown,
            value: value.ln(),
            variance,
            unit: 1.0,
        })
    }

    /// The same figure, made of counts alone: the assumed spread is for CPU times.
    #[must_use]
    pub fn counted(self) -> Self {
        Self {
            unit: self.unit * COUNTED,
            ..self
        }
    }

    /// `hits` of `all`, both counted. One of each kind is added for the error, as Agresti
    /// and Caffo (2000) do for differences: it holds for shares near 0 and 1, too. None
    /// where there is nothing to count.
    pub fn share(hits: f64, all: f64) -> Option<Self> {
        let sound = hits.is_finite() && all.is_finite() && hits >= 0.0 && all >= 1.0;
        sound.then(|| {
            let share = ((hits + 1.0) / (all + 2.0)).min(1.0 - 1.0 / (all + 2.0));
            let unit = share * (1.0 - share);
            let shown = (hits / all).min(1.0);
            Self {
                shown,
                value: shown,
                variance: unit / (all + 2.0),
                unit,
            }
        })
    }
}

/// The spread between runs of a figure, after what repeats told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// Relative variance.
    variance: f64,
    /// Variance of that variance: how uncertain it is itself.
    error: f64,
}

impl Spread {
    /// From groups of repeats: what they vary beyond their counting errors, averaged with
    /// the assumption by degrees of freedom (the moderated variance of Smyth, 2004).
    /// Groups of one run leave the assumption as it is. It is never less than observed.
    pub fn of<'a>(groups: impl Iterator<Item = &'a [Estimate]>, assumed: Noise) -> Self {
        let (mut squares, mut counting, mut freedom) = (0.0, 0.0, 0.0);
        for group in groups.filter(|group| group.len() > 1) {
            let mean = mean(group, |one| one.value);
            let free = size(group) - 1.0;
            squares += group
                .iter()
                .map(|one| ((one.value - mean) / one.unit).powi(2))
                .sum::<f64>();
            counting += free * self::mean(group, |one| one.variance / one.unit.powi(2));
            freedom += free;
        }
        let observed = (squares - counting).max(0.0);
        let weight = assumed.weight;
        let averaged = (weight * assumed.spread.powi(2) + observed) / (weight + freedom);
        let seen = observed / freedom.max(1.0);
        // A variance that is estimated with n degrees of freedom has a variance of 2/n of
        // its square. Counting errors make what is observed uncertain, too.
        let total = squares / freedom.max(1.0);
        if seen > averaged {
            // An assumption that is too good must not talk away what is seen.
            return Self {
                variance: seen,
                error: 2.0 * total.powi(2) / freedom.max(FEWEST),
            };
        }
        let sum = weight * assumed.spread.powi(4) + freedom * total.powi(2);
        Self {
            variance: averaged,
            error: 2.0 * sum / (weight + freedom).powi(2),
        }
    }
}

/// A figure over all runs of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Level {
    scale: Scale,
    value: f64,
    uncertainty: Uncertainty,
    /// As it is shown.
    shown: f64,
    /// How many runs.
    pub runs: usize,
}

impl Level {
    /// Mean of `runs`; None without any.
    pub fn of(runs: &[Estimate], scale: Scale, spread: Spread) -> Option<Self> {
        if runs.is_empty() {
            return None;
        }
        let number = size(runs);
        Some(Self {
            scale,
            value: mean(runs, |one| one.value),
            uncertainty: Uncertainty {
                counting: mean(runs, |one| one.variance) / number,
                by_spread: mean(runs, |one| one.unit.powi(2)) / number,
                spread,
            },
            shown: shown(runs, scale),
            runs: runs.len(),
        })
    }

    /// The figure as it is shown.
    pub(crate) const fn shown(&self) -> f64 {
        self.shown
    }

    /// Its limits at this confidence (0 to 1).
    pub fn limits(&self, confidence: f64) -> (f64, f64) {
        let half = self.uncertainty.half_width(confidence);
        let (low, high) = (self.value - half, self.value + half);
        match self.scale {
            Scale::Ratio => (low.exp(), high.exp()),
            Scale::Share => (low.max(0.0), high.min(1.0)),
        }
    }
}

/// Mean of runs, geometric for ratios unless one of them shows zero.
fn shown(runs: &[Estimate], scale: Scale) -> f64 {
    if scale == Scale::Ratio && runs.iter().all(|one| one.shown > 0.0) {
        return mean(runs, |one| one.shown.ln()).exp();
    }
    mean(runs, |one| one.shown)
}

/// The change from one level to another, with limits. Ratios as relative changes (-0.2 is
/// a fifth less), shares as differences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Contrast {
    /// The change; infinite from zero.
    pub change: f64,
    /// Lower limit.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
    /// Half the interval's width on the scale.
    pub(crate) half_width: f64,
}

impl Contrast {
    /// From `before` to `after`, with limits at `confidence` (0 to 1).
    pub(crate) fn between(before: &Level, after: &Level, confidence: f64) -> Self {
        // Both have the same spread.
        let half_width = Uncertainty {
            counting: before.uncertainty.counting + after.uncertainty.counting,
            by_spread: before.uncertainty.by_spread + after.uncertainty.by_spread,
            spread: before.uncertainty.spread,
        }
        .half_width(confidence);
        let difference = after.value - before.value;
        let relative = |value: f64| match before.scale {
            Scale::Ratio => value.exp_m1(),
            Scale::Share => value.clamp(-1.0, 1.0),
        };
        let change = match before.scale {
            Scale::Ratio if before.shown == after.shown => 0.0,
            Scale::Ratio => after.shown / before.shown - 1.0,
            Scale::Share => relative(difference),
        };
        Self {
            change,
            low: relative(difference - half_width),
            high: relative(difference + half_width),
            half_width,
        }
    }

    /// Whether "no change" is outside of the limits.
    pub fn is_real(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// What makes a level uncertain.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Uncertainty {
    /// Variance that is known from counts.
    counting: f64,
    /// How much variance the spread between runs adds, by its own.
    by_spread: f64,
    spread: Spread,
}

impl Uncertainty {
    /// Student's quantile times the standard error. Only the spread is itself uncertain:
    /// degrees of freedom by Satterthwaite (1946).
    fn half_width(&self, confidence: f64) -> f64 {
        let total = self.counting + self.by_spread * self.spread.variance;
        if total <= 0.0 {
            return 0.0;
        }
        let error = self.by_spread.powi(2) * self.spread.error;
        // Without an error it is infinite.
        let freedom = (2.0 * total.powi(2) / error).max(1.0);
        quantile(confidence, freedom) * total.sqrt()
    }
}

/// Two-sided quantile of Student's distribution.
fn quantile(confidence: f64, freedom: f64) -> f64 {
    let upper = 0.5 + confidence.clamp(0.0, 1.0 - 1e-12) / 2.0;
    if freedom >= MANY {
        return Normal::standard().inverse_cdf(upper);
    }
    // Its parameters are in range; were they not, nothing would be told apart.
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |student| student.inverse_cdf(upper))
}

#[expect(clippy::cast_precision_loss, reason = "numbers of runs")]
fn size(runs: &[Estimate]) -> f64 {
    runs.len() as f64
}

fn mean(runs: &[Estimate], of: impl Fn(&Estimate) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / size(runs).max(1.0)
}

#[cfg(test)]
mod tests;
