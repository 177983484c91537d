//! What is wrong, before all figures.

use crate::document::{Block, Card, Fact, Tone, and_more};
use tlsprof_common::units::{count, percent, time};
use tlsprof_report::model::{Finding, Prediction, PredictionKind, Range, Report, Severity};

/// Findings shown where there is little room; the JSON has all.
const SHOWN: usize = 12;

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
    Some(Block::section("Findings", blocks))
}

/// One finding with its evidence and remedy, under a number.
pub(crate) fn finding(number: usize, finding: &Finding) -> Block {
    let remedy = &finding.remedy;
    let mut blocks = vec![Block::Text(evidence(finding))];
    blocks.extend(saving(&finding.prediction));
    blocks.extend([
        Block::Text(format!("Change ({}): {}", remedy.server, remedy.change)),
        Block::Code(remedy.directive.clone()),
        Block::Marked(
            Tone::Soft,
            format!(
                "Risk: {} More: `tlsprof explain {}`.",
                finding.risk, finding.id
            ),
        ),
    ]);
    Block::Card(Box::new(Card {
        number,
        title: finding.title.clone(),
        tone: tone(finding.severity),
        label: finding.severity.label().to_owned(),
        facts: vec![
            Fact::Words(finding.service_name.clone()),
            Fact::Code(finding.id.clone()),
        ],
        blocks,
    }))
}

/// What was seen, in sentences.
fn evidence(finding: &Finding) -> String {
    format!(
        "{} Basis: {} {} in {}.",
        finding.evidence.join(" "),
        count(finding.observed_count),
        finding.observed,
        time(finding.observed_seconds)
    )
}

const fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::High => Tone::Bad,
        Severity::Medium => Tone::Look,
        _ => Tone::Strong,
    }
}

/// The saving; None where there is nothing to save.
fn saving(prediction: &Prediction) -> Option<Block> {
    let is_predicted = prediction.cpu_ratio.is_some() || prediction.latency_seconds.is_some();
    let tone = if is_predicted {
        Tone::Strong
    } else {
        Tone::Plain
    };
    let text = saving_in_words(prediction);
    (!text.is_empty()).then_some(Block::Marked(tone, text))
}

fn saving_in_words(prediction: &Prediction) -> String {
    if let Some(latency) = prediction.latency_seconds {
        return format!(
            "Would shorten each handshake by about {}; saves no CPU.",
            time(latency.likely)
        );
    }
    let (Some(share), Some(capacity)) = (prediction.cpu_ratio, prediction.capacity_ratio) else {
        if prediction.method.is_empty() {
            return String::new();
        }
        return format!("No saving predicted: {}.", prediction.method);
    };
    let mut text = if prediction.kind == PredictionKind::AtMost {
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
    };
    if prediction.variants.len() > 1 {
        let variants: Vec<String> = prediction
            .variants
            .iter()
            .map(|variant| {
                format!(
                    "{} at {}",
                    percent(variant.cpu_ratio.likely),
                    variant.change
                )
            })
            .collect();
        text.push_str(&format!(" Saving: {}.", variants.join(", ")));
    }
    text.push_str(&format!(" {}", prediction.method));
    text
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

    #[test]
    fn an_upper_bound_is_no_exact_figure() {
        for (capacity, text) in [(1.04, "1.0"), (2.39, "2.3"), (25.88, "20"), (100.0, "100")] {
            assert_eq!(bound(capacity), text);
        }
    }
}
