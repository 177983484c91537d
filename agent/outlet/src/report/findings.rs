//! What is wrong, before all figures.

use crate::document::{Block, Card, Fact, Tone, and_more};
use tlsprof_advise::Kind;
use tlsprof_common::units::{count, percent, time};
use tlsprof_report::model::{
    Finding, Prediction, PredictionKind, Range, Report, Severity, Variant,
};

/// Findings shown where there is little room; the JSON has all.
const SHOWN: usize = 12;
/// Sentences of a change that are always shown: the second is a condition, or a step that must
/// follow. The `findings.js` of the live page has this number too.
const CHANGE: usize = 2;

pub(super) fn findings(report: &Report) -> Option<Block> {
    let all = report.findings.iter().enumerate();
    let mut blocks: Vec<Block> = all.map(|(at, one)| finding(at + 1, one)).collect();
    if blocks.is_empty() {
        return None;
    }
    let rest = blocks.split_off(blocks.len().min(SHOWN));
    if !rest.is_empty() {
        let more = vec![Block::Text(and_more(rest.len()))];
        blocks.push(Block::Fold(rest, more));
    }
    let predictions = report.findings.iter().map(|one| &one.prediction);
    if predictions.filter(|one| one.cpu_ratio.is_some()).count() > 1 {
        let text = "Savings of several findings overlap and do not add up.";
        blocks.push(Block::Marked(Tone::Soft, text.to_owned()));
    }
    let more =
        "`tlsprof explain NAME` explains a finding, `--verbose` shows how savings were estimated.";
    let more = Block::Marked(Tone::Soft, more.to_owned());
    blocks.push(Block::Fold(Vec::new(), vec![more]));
    Some(Block::section("Findings", blocks))
}

/// The pages of the findings in the report, which stands alone.
pub(super) fn pages(report: &Report) -> Option<Block> {
    let has = |kind: &&Kind| report.findings.iter().any(|one| one.id == kind.label);
    let kinds: Vec<&Kind> = Kind::all().iter().copied().filter(has).collect();
    let section = || Block::section("About these findings", vec![Block::Pages(kinds)]);
    (!report.findings.is_empty()).then(|| Block::Fold(vec![section()], Vec::new()))
}

/// One finding under a number: what was seen, the saving, the change and its risk, each in a
/// line. What else there is to know is among its details.
pub(crate) fn finding(number: usize, finding: &Finding) -> Block {
    let remedy = &finding.remedy;
    let (seen, _) = sentences(1, finding.evidence.first().map_or("", String::as_str));
    let (change, _) = sentences(CHANGE, &remedy.change);
    let (risk, _) = sentences(1, &finding.risk);
    let mut blocks = vec![Block::Text(seen.to_owned())];
    blocks.extend(saving(&finding.prediction).map(Block::Text));
    blocks.extend([
        Block::Text(format!("Change ({}): {change}", remedy.server)),
        Block::Code(remedy.directive.clone()),
        Block::Marked(Tone::Soft, format!("Risk: {risk}")),
        Block::Details("Details and estimate".to_owned(), details(finding)),
    ]);
    Block::Card(Box::new(Card {
        number,
        title: finding.title.clone(),
        tone: tone(finding.severity),
        label: finding.severity.label().to_owned(),
        facts: vec![
            Fact::Words(finding.service_name.clone()),
            Fact::Finding(finding.id.clone()),
        ],
        blocks,
    }))
}

/// What does not fit into its lines, and how the saving was estimated.
fn details(finding: &Finding) -> Vec<Block> {
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
    let paragraphs = paragraphs.into_iter().filter(|text| !text.is_empty());
    paragraphs.map(Block::Text).collect()
}

/// The first sentences of a text, so many, and the rest.
fn sentences(number: usize, text: &str) -> (&str, &str) {
    let mut ends = text.match_indices(". ").map(|(at, _)| at + 1);
    let end = ends.nth(number - 1).unwrap_or(text.len());
    let (first, rest) = text.split_at(end);
    (first, rest.trim_start())
}

const fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::High => Tone::Bad,
        Severity::Medium => Tone::Look,
        _ => Tone::Strong,
    }
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

fn span(range: Range) -> String {
    format!("{} to {}", percent(range.low), percent(range.high))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn an_upper_bound_is_no_exact_figure() {
        for (capacity, text) in [(1.04, "1.0"), (2.39, "2.3"), (25.88, "20"), (100.0, "100")] {
            assert_eq!(bound(capacity), text);
        }
    }
}
