//! What is wrong, before all figures.

use crate::document::{Block, Card, Fact, Tone, and_more};
use tlsprof_advise::Kind;
use tlsprof_report::model::{Finding, Report, Severity};

use super::finding_lines::FindingLines;

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

/// One finding under a number, line by line.
pub(crate) fn finding(number: usize, finding: &Finding) -> Block {
    let lines = FindingLines::of(finding);
    let remedy = &finding.remedy;
    let mut blocks = vec![Block::Text(lines.seen)];
    blocks.extend(lines.saving.map(Block::Text));
    let details = lines.details.into_iter().map(Block::Text).collect();
    blocks.extend([
        Block::Text(format!("Change ({}): {}", remedy.server, lines.change)),
        Block::Code(remedy.directive.clone()),
        Block::Marked(Tone::Soft, format!("Risk: {}", lines.risk)),
        Block::Details("Details and estimate".to_owned(), details),
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

const fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::High => Tone::Bad,
        Severity::Medium => Tone::Look,
        _ => Tone::Strong,
    }
}
