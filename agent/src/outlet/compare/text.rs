//! The comparison as text for a terminal: the answer first, then its evidence.

use crate::compare::model::{
    Comparison, FigureComparison, Group, Ranking, ServiceComparison, Verdict,
};
use crate::outlet::terminal::table::{Align, Table};
use crate::outlet::terminal::units::time;
use crate::outlet::terminal::{Paint, Style, printable, shorten, wrap};

use super::{sentences, words};

/// More groups than these have a row each instead of a column.
const COLUMNS: usize = 4;
/// Width of a label in a table's head.
const HEAD: usize = 16;
/// Figures of a matrix, in its columns.
const MATRIX: [(&str, &str); 6] = [
    ("cpu_per_full_handshake", "full handshake"),
    ("cpu_per_resumed_handshake", "resumed"),
    ("cpu_per_megabyte", "MB encrypted"),
    ("handshake_share", "handshakes' share"),
    ("resumption_share", "resumption"),
    ("turns_per_connection", "requests/conn."),
];

/// The comparison as text, with a newline at the end.
pub fn render(comparison: &Comparison, style: Style) -> String {
    let mut out = String::new();
    for service in &comparison.services {
        let text = sentences::headline(comparison, service);
        out.push_str(&painted(&text, Paint::Bold, 0, style));
    }
    for warning in &comparison.warnings {
        out.push_str(&painted(&printable(warning), Paint::Yellow, 0, style));
    }
    out.push('\n');
    out.push_str(&groups(comparison, style));
    for service in &comparison.services {
        out.push('\n');
        out.push_str(&of_service(comparison, service, style));
    }
    out.push('\n');
    let notes = sentences::left_out(&comparison.left_out);
    for note in notes.iter().chain(&sentences::method(comparison)) {
        out.push_str(&painted(note, Paint::Dim, 0, style));
    }
    out
}

fn painted(text: &str, paint: Paint, indent: usize, style: Style) -> String {
    let lines = wrap(text, indent, style.width);
    let paint = |line| style.paint(paint, line) + "\n";
    lines.lines().map(paint).collect()
}

fn groups(comparison: &Comparison, style: Style) -> String {
    let mut table = Table::new()
        .left("reports")
        .right("runs")
        .right("time")
        .left("host")
        .left("file");
    for (at, group) in comparison.groups.iter().enumerate() {
        let seconds: f64 = group.runs.iter().map(|run| run.duration_seconds).sum();
        let first = group.runs.first();
        let more = group.runs.len().saturating_sub(1);
        let files = first.map_or_else(String::new, |run| run.file.clone());
        let base = if at == 0 { " (first)" } else { "" };
        table.row([
            format!("{}{base}", group.label),
            group.runs.len().to_string(),
            time(seconds),
            first.map_or_else(String::new, |run| printable(&run.hostname).into_owned()),
            if more == 0 {
                files
            } else {
                format!("{files} and {more} more")
            },
        ]);
    }
    table.render(style, 0)
}

fn of_service(comparison: &Comparison, service: &ServiceComparison, style: Style) -> String {
    let mut out = style.paint(Paint::Bold, &names(service));
    out.push('\n');
    let groups = comparison.groups.as_slice();
    match groups.len() {
        2 => out.push_str(&changes(service, groups, style)),
        3..=COLUMNS => {
            out.push_str(&matrix(comparison, service, style));
            out.push('\n');
            out.push_str(&levels(service, groups, style));
        }
        _ => out.push_str(&matrix(comparison, service, style)),
    }
    out.push_str(&mixes(service, groups, style));
    out.push_str(&findings(comparison, service, style));
    for note in &service.notes {
        out.push_str(&painted(&printable(note), Paint::Dim, 2, style));
    }
    out
}

/// The service's name, and those in other groups.
fn names(service: &ServiceComparison) -> String {
    let name = printable(&service.service_name).into_owned();
    let others: Vec<&str> = service
        .names
        .iter()
        .flatten()
        .map(String::as_str)
        .filter(|other| *other != service.service_name)
        .collect();
    if others.is_empty() {
        return name;
    }
    let others = others.join(", ");
    let how = if service.matched_by == "port" {
        ", by their port"
    } else {
        ""
    };
    format!("{name} (in other reports {}{how})", printable(&others))
}

/// Two groups: what changed, figure by figure.
fn changes(service: &ServiceComparison, groups: &[Group], style: Style) -> String {
    let mut table = Table::new().left("figure");
    for group in groups {
        table = table.right(shorten(&group.label, HEAD).into_owned());
    }
    table = table
        .right("change")
        .optional("limits", Align::Right)
        .left("verdict");
    for figure in &service.figures {
        let Some(change) = figure.changes.first() else {
            continue;
        };
        let level = |at| words::figure(figure, figure.levels.get(at).copied().flatten());
        table.row([
            figure.title.clone(),
            level(0),
            level(1),
            words::change(figure, change),
            words::change_limits(figure, change),
            verdict(figure, change.verdict),
        ]);
        match change.verdict {
            Verdict::Better => table.mark(Paint::Green),
            Verdict::Worse => table.mark(Paint::Red),
            Verdict::NoDifference | Verdict::NotEnoughData | Verdict::NotJudged => {
                table.mark(Paint::Dim);
            }
            Verdict::Higher | Verdict::Lower => {}
        }
    }
    table.render(style, 2)
}

fn verdict(figure: &FigureComparison, verdict: Verdict) -> String {
    let told = match verdict {
        Verdict::NoDifference => "noise",
        other => other.words(),
    };
    if words::needs_caveat(figure, verdict) {
        return format!("{told}: {}", figure.caveat);
    }
    told.to_owned()
}

/// Three groups or more: a row for each, the cheapest first.
fn matrix(comparison: &Comparison, service: &ServiceComparison, style: Style) -> String {
    let Some(ranking) = &service.ranking else {
        return "  Its cost is not known in two of the reports.\n".to_owned();
    };
    let find = |name: &str| service.figures.iter().find(|one| one.figure == name);
    let Some(headline) = find(&ranking.figure) else {
        return String::new();
    };
    let columns: Vec<(&FigureComparison, &'static str)> = MATRIX
        .iter()
        .filter(|(name, _)| *name != ranking.figure)
        .filter_map(|(name, title)| Some((find(name)?, *title)))
        .collect();
    let mut table = Table::new()
        .left("report")
        .right(headline.title.clone())
        .optional("95% range", Align::Right)
        .right("against first");
    for (_, title) in &columns {
        table = table.optional(*title, Align::Right);
    }
    for at in order(comparison, ranking) {
        let label = comparison.groups.get(at).map_or("", |group| &group.label);
        let level = |figure: &FigureComparison| figure.levels.get(at).copied().flatten();
        // The first group has no change from itself.
        let change = |figure: &'_ FigureComparison| {
            let place = at.checked_sub(1)?;
            figure.changes.get(place).cloned()
        };
        let marked = |figure: &FigureComparison| {
            let mark = change(figure).map_or("", |change| words::mark(&change));
            words::figure(figure, level(figure)) + mark
        };
        let mut cells = vec![
            label.to_owned(),
            words::figure(headline, level(headline)),
            words::limits(headline, level(headline)),
            change(headline).map_or_else(
                || "(first)".to_owned(),
                |one| words::change(headline, &one) + words::mark(&one),
            ),
        ];
        cells.extend(columns.iter().map(|(figure, _)| marked(figure)));
        table.cells(cells);
    }
    let mut out = table.render(style, 2);
    for sentence in sentences::noise(ranking) {
        out.push_str(&wrap(&sentence, 2, style.width));
    }
    let legend = "▲ ▼ higher and lower than the first, and real; without a mark it may be noise.";
    out.push_str(&painted(legend, Paint::Dim, 2, style));
    out
}

/// Positions of groups, in the order of the ranking; those that it does not have last.
fn order(comparison: &Comparison, ranking: &Ranking) -> Vec<usize> {
    let place = |label: &String| ranking.order.iter().position(|one| one == label);
    let mut order: Vec<usize> = (0..comparison.groups.len()).collect();
    let of = |at: &usize| {
        comparison
            .groups
            .get(*at)
            .and_then(|group| place(&group.label))
    };
    order.sort_by_key(|at| of(at).unwrap_or(usize::MAX));
    order
}

/// All figures of a few groups, a column for each.
fn levels(service: &ServiceComparison, groups: &[Group], style: Style) -> String {
    let mut table = Table::new().left("figure");
    for group in groups {
        table = table.right(shorten(&group.label, HEAD).into_owned());
    }
    for figure in &service.figures {
        let mut cells = vec![figure.title.clone()];
        for (at, level) in figure.levels.iter().enumerate() {
            let change = at.checked_sub(1).and_then(|at| figure.changes.get(at));
            cells.push(words::figure(figure, *level) + change.map_or("", words::mark));
        }
        table.cells(cells);
    }
    table.render(style, 2)
}

/// What handshakes used, where that differs.
fn mixes(service: &ServiceComparison, groups: &[Group], style: Style) -> String {
    if groups.len() > COLUMNS {
        return String::new();
    }
    let mut table = Table::new().left("handshakes with");
    for group in groups {
        table = table.right(shorten(&group.label, HEAD).into_owned());
    }
    for mix in &service.mixes {
        for part in mix.parts.iter().filter(|part| words::differs(part)) {
            let mut cells = vec![format!("{} {}", mix.of, printable(&part.name))];
            cells.extend(words::shares(part));
            table.cells(cells);
        }
    }
    if table.is_empty() {
        return String::new();
    }
    format!("\n{}", table.render(style, 2))
}

fn findings(comparison: &Comparison, service: &ServiceComparison, style: Style) -> String {
    if service.findings.is_empty() {
        return String::new();
    }
    let two = comparison.groups.len() == 2;
    let mut table = Table::new()
        .left("finding")
        .left(if two { "" } else { "in" });
    for finding in &service.findings {
        let told = if two {
            words::fate(finding, comparison).to_owned()
        } else {
            words::holders(finding, comparison)
        };
        table.row([printable(&finding.id).into_owned(), told]);
    }
    format!("\n{}", table.render(style, 2))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::outlet::terminal::golden;

    #[test]
    fn snapshot_of_two_reports() {
        let text = render(&sample::two(), Style::plain(100));
        golden::snapshot("compare-two.txt", &text);
        assert!(text.lines().all(|line| line.chars().count() <= 100));
    }

    #[test]
    fn snapshot_of_repeats_at_80_columns() {
        let text = render(&sample::repeats(), Style::plain(80));
        golden::snapshot("compare-repeats-80.txt", &text);
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn snapshot_of_a_matrix() {
        let text = render(&sample::matrix(), Style::plain(120));
        golden::snapshot("compare-matrix.txt", &text);
        assert!(text.lines().all(|line| line.chars().count() <= 120));
    }
}
