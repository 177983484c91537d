//! A report in a few lines: the answer, and a line for each finding and service.

use super::finding_lines::FindingLines;
use super::{headline, is_shown, losses, shares};
use crate::document::{Block, Document, Table, text as plain};
use crate::terminal::Style;
use tlsprof_common::units::{count, time};
use tlsprof_report::model::Report;

/// The summary as text, with a newline at the end.
pub fn text(report: &Report, style: Style) -> String {
    plain::render(&document(report), style, false)
}

fn document(report: &Report) -> Document {
    let mut head = headline::answer(report);
    head.extend(headline::command(report));
    head.extend(losses::losses(report));
    let mut main = Vec::new();
    main.extend(findings(report));
    main.extend(services(report));
    Document {
        title: String::new(),
        about: super::circumstances(report),
        head,
        main,
        foot: Vec::new(),
    }
}

fn findings(report: &Report) -> Option<Block> {
    if report.findings.is_empty() {
        return None;
    }
    let mut table = Table::new("Findings")
        .words("severity")
        .words("finding")
        .words("service")
        .number("would save");
    for one in &report.findings {
        let cells = [
            one.severity.label().to_owned(),
            one.id.clone(),
            one.service_name.clone(),
            FindingLines::of(one).gain.unwrap_or_else(|| "-".to_owned()),
        ];
        table.row(cells.map(Into::into));
    }
    let more = "`tlsprof explain FINDING` says what each means, and what to change.";
    let blocks = vec![table.into(), Block::Text(more.to_owned())];
    Some(Block::section("Findings", blocks))
}

fn services(report: &Report) -> Option<Block> {
    let mut table = Table::new("Services").words("service").numbers([
        "CPU",
        "handshakes",
        "handshake CPU",
        "share",
    ]);
    for one in report.services.iter().filter(|one| is_shown(report, one)) {
        table.row([
            one.service_name.as_str().into(),
            time(one.cpu_seconds.total()).into(),
            count(one.handshake_count()).into(),
            shares::at_least(one, time(one.handshake_cpu_seconds())).into(),
            shares::in_words(one).into(),
        ]);
    }
    (!table.rows.is_empty()).then(|| Block::section("Services", vec![table.into()]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlsprof_common::golden;
    use tlsprof_report::sample;

    #[test]
    fn snapshot_of_the_text() {
        let report = sample::report();
        golden::snapshot("summary.txt", &text(&report, Style::plain(80)));
    }
}
