//! What is wrong, with remedies.

use maud::{Markup, html};

use crate::outlet::report::model::{Finding, Report};
use crate::outlet::terminal::printable;

use super::text::findings::{evidence, saving};

pub(super) fn findings(report: &Report) -> Markup {
    let savings = report
        .findings
        .iter()
        .filter(|one| one.prediction.cpu_ratio.is_some());
    html! {
        @if !report.findings.is_empty() {
            h2 { "Findings" }
            @for one in &report.findings { (finding(one)) }
            @if savings.count() > 1 {
                p class="soft" { "Savings overlap: what one change saves, another cannot save again." }
            }
        }
    }
}

fn finding(finding: &Finding) -> Markup {
    let severity = severity(&finding.severity);
    let saving = saving(&finding.prediction);
    let prediction = &finding.prediction;
    let is_predicted = prediction.cpu_ratio.is_some() || prediction.latency_seconds.is_some();
    html! {
        article class={ "card finding " (severity) } {
            h3 { (printable(&finding.title)) }
            p class="small" {
                span class={ "tag " (severity) } { (severity) }
                " " (printable(&finding.service_name)) " · " code { (printable(&finding.id)) }
            }
            p { (printable(&evidence(finding))) }
            @if !saving.is_empty() {
                p class=[is_predicted.then_some("saving")] { (printable(&saving)) }
            }
            p { "Change (" (printable(&finding.remedy.server)) "): " (printable(&finding.remedy.change)) }
            @if !finding.remedy.directive.is_empty() {
                pre tabindex="0" aria-label="What to write into the configuration" {
                    @for line in finding.remedy.directive.lines() { (printable(line)) "\n" }
                }
            }
            p class="soft small" {
                "Risk: " (printable(&finding.risk)) " See " (printable(&finding.page)) "."
            }
        }
    }
}

/// One of the classes of the style.
fn severity(of: &str) -> &'static str {
    match of {
        "high" => "high",
        "medium" => "medium",
        "low" => "low",
        _ => "info",
    }
}
