//! What is wrong, before all figures.

use crate::outlet::report::model::{Finding, Prediction, Range, Report};
use crate::outlet::terminal::units::{count, percent, time};
use crate::outlet::terminal::{Paint, Style, printable, wrap};

use super::paint_lines;

/// Findings shown; the JSON has all.
const SHOWN: usize = 12;
/// Columns before a finding's text, under its number.
const INDENT: usize = 4;

pub(super) fn findings(report: &Report, style: Style) -> String {
    if report.findings.is_empty() {
        return String::new();
    }
    let mut out = format!("\n{}\n", style.paint(Paint::Bold, "Findings"));
    for (at, finding) in report.findings.iter().take(SHOWN).enumerate() {
        if at > 0 {
            out.push('\n');
        }
        out.push_str(&one(at + 1, finding, style));
    }
    let more = report.findings.len().saturating_sub(SHOWN);
    if more > 0 {
        out.push_str(&format!("\n  and {more} more (all are in the JSON)\n"));
    }
    let savings = report
        .findings
        .iter()
        .filter(|one| one.prediction.cpu_ratio.is_some());
    if savings.count() > 1 {
        let text = "Savings overlap: what one change saves, another cannot save again.";
        let lines = wrap(text, 0, style.width);
        out.push_str(&format!("\n{}", paint_lines(style, Paint::Dim, &lines)));
    }
    out
}

pub(super) fn one(number: usize, finding: &Finding, style: Style) -> String {
    let lines = wrap(&finding.title, INDENT, style.width);
    let heading = format!("{number:>2}  {}", lines.trim_start());
    let mut out = paint_lines(style, paint(&finding.severity), &heading);
    let name = printable(&finding.service_name);
    let facts = format!("{} · {name} · {}", finding.severity, finding.id);
    out.push_str(&paint_lines(
        style,
        Paint::Dim,
        &wrap(&facts, INDENT, style.width),
    ));
    let paragraphs = [
        evidence(finding),
        saving(&finding.prediction),
        format!(
            "Change ({}): {}",
            finding.remedy.server, finding.remedy.change
        ),
    ];
    for text in paragraphs.iter().filter(|text| !text.is_empty()) {
        out.push_str(&wrap(&printable(text), INDENT, style.width));
    }
    for line in finding.remedy.directive.lines() {
        out.push_str(&format!("{:1$}{line}\n", "", INDENT + 4));
    }
    let end = format!("Risk: {} See {}.", finding.risk, finding.page);
    out.push_str(&paint_lines(
        style,
        Paint::Dim,
        &wrap(&end, INDENT, style.width),
    ));
    out
}

/// What was seen, in sentences.
pub(in crate::outlet::report) fn evidence(finding: &Finding) -> String {
    format!(
        "{} Seen in {} {} in {}.",
        finding.evidence.join(" "),
        count(finding.observed_count),
        finding.observed,
        time(finding.observed_seconds)
    )
}

fn paint(severity: &str) -> Paint {
    match severity {
        "high" => Paint::Red,
        "medium" => Paint::Yellow,
        _ => Paint::Bold,
    }
}

/// The saving in words; empty where there is nothing to save.
pub(in crate::outlet::report) fn saving(prediction: &Prediction) -> String {
    if let Some(latency) = prediction.latency_seconds {
        return format!(
            "Saves about {} of waiting in each handshake; no CPU.",
            time(latency.likely)
        );
    }
    let (Some(share), Some(capacity)) = (prediction.cpu_ratio, prediction.capacity_ratio) else {
        if prediction.method.is_empty() {
            return String::new();
        }
        return format!(
            "What it would save is not predicted: {}.",
            prediction.method
        );
    };
    let mut text = if prediction.kind == "at_most" {
        format!(
            "Saves at most about {:.0}% of its CPU (up to {} times the work with the same CPU): {}.",
            100.0 * share.likely,
            bound(capacity.likely),
            prediction.caveat
        )
    } else {
        format!(
            "Saves {} of its CPU ({}): {:.2} times the work with the same CPU.",
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
        text.push_str(&format!(" It is {}.", variants.join(", ")));
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
