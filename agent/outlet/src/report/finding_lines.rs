//! A finding in lines: what was seen, the saving, the change and its risk, each in one. Reports,
//! `tlsprof top` and the live page show these; the rest is folded.

use serde::{Deserialize, Serialize};

use tlsprof_advise::NEARLY_ALL;
use tlsprof_common::units::{count, percent, time};
use tlsprof_report::model::{Finding, Prediction, PredictionKind, Range, Variant};

/// Sentences of a change that are always shown: the second is a condition, or a step that must
/// follow.
const CHANGE: usize = 2;

/// What a reader needs of a finding, and the rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FindingLines {
    /// What was seen.
    pub(crate) seen: String,
    /// The saving, with its interval and capacity factor, or why none is predicted; null where
    /// there is nothing to save.
    pub(crate) saving: Option<String>,
    /// The saving in a few words: `24.5% of CPU`, or `1.20 ms each` (handshake).
    pub(crate) gain: Option<String>,
    /// What to change.
    pub change: String,
    /// What that may break.
    pub risk: String,
    /// More evidence, how the saving was estimated, more on the change and its risk: paragraphs.
    pub(crate) details: Vec<String>,
}

impl FindingLines {
    /// Those of a finding.
    pub fn of(finding: &Finding) -> Self {
        let (seen, _) = sentences(1, finding.evidence.first().map_or("", String::as_str));
        let (change, _) = sentences(CHANGE, &finding.remedy.change);
        let (risk, _) = sentences(1, &finding.risk);
        Self {
            seen: seen.to_owned(),
            saving: saving(&finding.prediction),
            gain: gain(&finding.prediction),
            change: change.to_owned(),
            risk: risk.to_owned(),
            details: details(finding),
        }
    }
}

/// What does not fit into its lines, and how the saving was estimated.
fn details(finding: &Finding) -> Vec<String> {
    let evidence = finding.evidence.join(" ");
    let (_, evidence) = sentences(1, &evidence);
    let basis = format!(
        "Basis: {} {} in {}.",
        count(finding.observed_count),
        finding.observed,
        time(finding.observed_seconds)
    );
    let prediction = &finding.prediction;
    let estimate = match prediction.cpu_ratio {
        Some(_) => prediction.method.as_str(),
        None => "",
    };
    let (_, change) = sentences(CHANGE, &finding.remedy.change);
    let (_, risk) = sentences(1, &finding.risk);
    let named = |name: &str, text: &str| match text {
        "" => String::new(),
        text => format!("{name}: {text}"),
    };
    let paragraphs = [
        format!("{evidence} {basis}").trim_start().to_owned(),
        named("Saving", &variants(prediction)),
        estimate.to_owned(),
        named("Change", change),
        named("Risk", risk),
    ];
    let paragraphs = paragraphs.into_iter();
    paragraphs.filter(|text| !text.is_empty()).collect()
}

/// The first sentences of a text, so many, and the rest.
fn sentences(number: usize, text: &str) -> (&str, &str) {
    let mut ends = text.match_indices(". ").map(|(at, _)| at + 1);
    let end = ends.nth(number - 1).unwrap_or(text.len());
    let (first, rest) = text.split_at(end);
    (first, rest.trim_start())
}

/// The saving in a line; None where there is nothing to save.
fn saving(prediction: &Prediction) -> Option<String> {
    if let Some(latency) = prediction.latency_seconds {
        return Some(format!(
            "Would shorten each handshake by about {}; saves no CPU.",
            time(latency.likely)
        ));
    }
    let (Some(share), Some(capacity)) = (prediction.cpu_ratio, prediction.capacity_ratio) else {
        let reason = &prediction.method;
        return (!reason.is_empty()).then(|| format!("No saving predicted: {reason}."));
    };
    Some(if prediction.kind == PredictionKind::AtMost {
        format!(
            "Would save at most about {:.0}% of its CPU (up to {}x capacity): {}.",
            100.0 * share.likely,
            bound(capacity.likely),
            prediction.caveat
        )
    } else {
        format!(
            "Would save {} of its CPU ({}): {:.2}x capacity.",
            percent(share.likely),
            span(share),
            capacity.likely
        )
    })
}

/// The saving of other extents of the change; empty where there are none.
fn variants(prediction: &Prediction) -> String {
    let variants = &prediction.variants;
    if variants.len() < 2 {
        return String::new();
    }
    let one = |one: &Variant| format!("{} at {}", percent(one.cpu_ratio.likely), one.change);
    format!(
        "{}.",
        variants.iter().map(one).collect::<Vec<_>>().join(", ")
    )
}

/// An upper bound with the digits that it deserves: one from ten on, two below; rounded down.
fn bound(capacity: f64) -> String {
    if capacity < 10.0 {
        return format!("{:.1}", (10.0 * capacity).floor() / 10.0);
    }
    let unit = 10_f64.powf(capacity.log10().floor());
    format!("{:.0}", (capacity / unit).floor() * unit)
}

/// An interval of a share. An upper end of nearly all says nothing: it is left out.
fn span(range: Range) -> String {
    if range.high >= NEARLY_ALL {
        return format!("at least {}", percent(range.low));
    }
    format!("{} to {}", percent(range.low), percent(range.high))
}

/// Of the service's CPU time, or of the time of each handshake.
fn gain(prediction: &Prediction) -> Option<String> {
    if let Some(latency) = prediction.latency_seconds {
        return Some(format!("{} each", time(latency.likely)));
    }
    let share = prediction.cpu_ratio?.likely;
    Some(match prediction.kind {
        // An upper bound does not deserve decimals.
        PredictionKind::AtMost => format!("at most {:.0}% of CPU", 100.0 * share),
        _ => format!("{} of CPU", percent(share)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlsprof_advise::Kind;

    /// At 80 columns it takes two lines at most.
    #[test]
    fn a_risk_is_told_in_its_first_sentence() {
        for kind in Kind::all() {
            let (first, _) = sentences(1, kind.risk);
            assert!(
                first.ends_with('.') && first.len() <= 115,
                "{kind:?}: {first}"
            );
        }
    }

    #[test]
    fn a_full_stop_within_a_name_ends_no_sentence() {
        let text = "TLS 1.2 is old. So is that. All is.";
        assert_eq!(
            sentences(1, text),
            ("TLS 1.2 is old.", "So is that. All is.")
        );
        assert_eq!(
            sentences(2, text),
            ("TLS 1.2 is old. So is that.", "All is.")
        );
        assert_eq!(sentences(2, "One."), ("One.", ""));
    }

    const fn range(low: f64, likely: f64, high: f64) -> Option<Range> {
        Some(Range { low, likely, high })
    }

    #[test]
    fn a_saving_has_its_interval_and_its_capacity() {
        let mut prediction = Prediction {
            kind: PredictionKind::Saving,
            cpu_ratio: range(0.2, 0.25, 0.3),
            capacity_ratio: range(1.2, 1.333, 1.5),
            ..Prediction::default()
        };
        let text = "Would save 25.0% of its CPU (20.0% to 30.0%): 1.33x capacity.";
        assert_eq!(saving(&prediction).as_deref(), Some(text));
        assert_eq!(gain(&prediction).as_deref(), Some("25.0% of CPU"));
        prediction.cpu_ratio = range(0.311, 0.387, 1.0);
        prediction.capacity_ratio = range(1.451, 1.631, 100.0);
        let text = "Would save 38.7% of its CPU (at least 31.1%): 1.63x capacity.";
        assert_eq!(saving(&prediction).as_deref(), Some(text));
        prediction.cpu_ratio = range(0.2, 0.25, 0.3);
        prediction.capacity_ratio = range(1.2, 1.333, 1.5);
        prediction.kind = PredictionKind::AtMost;
        prediction.caveat = "if clients agree".to_owned();
        let text =
            "Would save at most about 25% of its CPU (up to 1.3x capacity): if clients agree.";
        assert_eq!(saving(&prediction).as_deref(), Some(text));
        assert_eq!(gain(&prediction).as_deref(), Some("at most 25% of CPU"));
    }

    #[test]
    fn what_cannot_be_predicted_has_its_reason() {
        let unknown = |method: &str| {
            saving(&Prediction {
                method: method.to_owned(),
                ..Prediction::default()
            })
        };
        let text = "No saving predicted: no cost is known.";
        assert_eq!(unknown("no cost is known").as_deref(), Some(text));
        assert_eq!(unknown(""), None);
    }

    #[test]
    fn an_upper_bound_is_no_exact_figure() {
        for (capacity, text) in [(1.04, "1.0"), (2.39, "2.3"), (25.88, "20"), (100.0, "100")] {
            assert_eq!(bound(capacity), text);
        }
    }
}
