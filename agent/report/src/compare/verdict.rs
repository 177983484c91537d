//! From contrasts to verdicts, and which groups are alike.

use super::model::{Sense, Verdict};
use super::statistics::{Contrast, Level, Scale};

/// Half of an interval that is wider cannot tell half more, or a third less, from noise:
/// ln 1.5.
const BLIND_RATIO: f64 = 0.405;
/// The same for shares: ten points.
const BLIND_SHARE: f64 = 0.1;

/// What a change means.
pub fn of(contrast: Option<&Contrast>, sense: Sense, scale: Scale) -> Verdict {
    if sense == Sense::Load {
        return Verdict::NotJudged;
    }
    let Some(contrast) = contrast else {
        return Verdict::NotEnoughData;
    };
    if contrast.is_real() {
        return match (sense, contrast.low > 0.0) {
            (Sense::Cost, true) | (Sense::Benefit, false) => Verdict::Worse,
            (Sense::Cost, false) | (Sense::Benefit, true) => Verdict::Better,
            (Sense::Context | Sense::Load | Sense::Unknown, true) => Verdict::Higher,
            (Sense::Context | Sense::Load | Sense::Unknown, false) => Verdict::Lower,
        };
    }
    let blind = match scale {
        Scale::Ratio => BLIND_RATIO,
        Scale::Share => BLIND_SHARE,
    };
    if contrast.half_width <= blind {
        Verdict::NoDifference
    } else {
        Verdict::NotEnoughData
    }
}

/// Runs of `sorted` levels in which every two may differ by noise alone, as long as can be,
/// by their positions. `confidence` is that of each pair.
pub fn alike(sorted: &[Level], confidence: f64) -> Vec<Vec<usize>> {
    let differ = |a: &Level, b: &Level| Contrast::between(a, b, confidence).is_real();
    let mut runs: Vec<Vec<usize>> = Vec::new();
    let mut reached = 0;
    for first in 0..sorted.len() {
        let mut run = vec![first];
        for (at, other) in sorted.iter().enumerate().skip(first + 1) {
            let mut members = run.iter().filter_map(|&member| sorted.get(member));
            if members.any(|one| differ(one, other)) {
                break;
            }
            run.push(at);
        }
        let end = first + run.len();
        // A run inside of the one before tells nothing new.
        if run.len() > 1 && end > reached {
            reached = end;
            runs.push(run);
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::compare::statistics::{Estimate, Noise, Spread};

    const NOISE: Noise = Noise {
        spread: 0.03,
        weight: 10.0,
    };

    fn level(value: f64, variance: f64) -> Level {
        let runs = [Estimate::ratio(value, value, variance).unwrap()];
        let spread = Spread::of([runs.as_slice()].into_iter(), NOISE);
        Level::of(&runs, Scale::Ratio, spread).unwrap()
    }

    fn verdict(before: f64, after: f64, variance: f64, sense: Sense) -> Verdict {
        let (before, after) = (level(before, variance), level(after, variance));
        let contrast = Contrast::between(&before, &after, 0.95);
        of(Some(&contrast), sense, Scale::Ratio)
    }

    #[test]
    fn a_change_is_judged_by_what_more_of_the_figure_means() {
        assert_eq!(verdict(1.0, 0.7, 0.0, Sense::Cost), Verdict::Better);
        assert_eq!(verdict(1.0, 1.3, 0.0, Sense::Cost), Verdict::Worse);
        assert_eq!(verdict(1.0, 1.3, 0.0, Sense::Benefit), Verdict::Better);
        assert_eq!(verdict(1.0, 0.7, 0.0, Sense::Benefit), Verdict::Worse);
        assert_eq!(verdict(1.0, 1.3, 0.0, Sense::Context), Verdict::Higher);
        assert_eq!(verdict(1.0, 0.7, 0.0, Sense::Context), Verdict::Lower);
        assert_eq!(verdict(1.0, 0.7, 0.0, Sense::Load), Verdict::NotJudged);
    }

    #[test]
    fn a_small_change_is_noise_and_a_blurred_one_is_not_called_so() {
        assert_eq!(verdict(1.0, 1.05, 0.0, Sense::Cost), Verdict::NoDifference);
        assert_eq!(verdict(1.0, 1.3, 0.1, Sense::Cost), Verdict::NotEnoughData);
        assert_eq!(of(None, Sense::Cost, Scale::Ratio), Verdict::NotEnoughData);
    }

    #[test]
    fn groups_that_noise_explains_stand_together() {
        let levels = [1.0, 1.02, 1.04, 1.6, 1.61, 9.0].map(|value| level(value, 0.0));
        assert_eq!(alike(&levels, 0.95), [vec![0, 1, 2], vec![3, 4]]);
        // The ends of a chain may differ though neighbours do not.
        let chain = [1.0, 1.08, 1.16].map(|value| level(value, 0.0));
        assert_eq!(alike(&chain, 0.95), [vec![0, 1], vec![1, 2]]);
    }
}
