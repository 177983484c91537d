//! One service's part of the comparison.

use crate::document::{Block, Cell, Drawn, Section, Table, Tone, anchor};
use crate::terminal::shorten;
use tlsprof_report::compare::model::{
    Change, Comparison, FigureComparison, FigureLevel, Group, MatchedBy, Ranking,
    ServiceComparison, Verdict,
};

use super::{sentences, words};

/// More groups than these have a row each instead of a column.
const COLUMNS: usize = 4;
/// Width of a label in a table's head.
const HEAD: usize = 16;
/// Changes by more than this are drawn at the edge.
const FURTHEST: f64 = 1.0;
/// Figures that stand beside the headline's where groups have rows.
const BESIDE: [(&str, &str); 6] = [
    ("cpu_per_full_handshake", "full handshake"),
    ("cpu_per_resumed_handshake", "resumed"),
    ("cpu_per_megabyte", "MB encrypted"),
    ("handshake_share", "handshakes' share"),
    ("resumption_share", "resumption"),
    ("turns_per_connection", "requests/conn."),
];

/// The service's part.
pub(super) fn section(comparison: &Comparison, at: usize, service: &ServiceComparison) -> Block {
    let groups = comparison.groups.as_slice();
    let mut blocks: Vec<Block> = names(service).into_iter().collect();
    if let [_, _] = groups {
        blocks.push(changes(service, groups).into());
        blocks.extend(mixes(service, groups));
    } else {
        let mut full = matrix(comparison, service, &[]);
        full.push(levels(service, groups));
        full.extend(mixes(service, groups));
        if groups.len() > COLUMNS {
            full = vec![Block::Fold(full, matrix(comparison, service, &BESIDE))];
        }
        blocks.extend(full);
    }
    blocks.extend(findings(comparison, service));
    blocks.extend(Block::remarks(service.notes.iter().cloned()));
    Block::Section(Section {
        title: service.service_name.clone(),
        anchor: Some(anchor("service", at)),
        blocks,
    })
}

/// Its names in other groups.
fn names(service: &ServiceComparison) -> Option<Block> {
    let names = service.names.iter().flatten().map(String::as_str);
    let others: Vec<&str> = names.filter(|name| *name != service.service_name).collect();
    let how = match service.matched_by {
        MatchedBy::Port => ", by their port",
        _ => "",
    };
    let text = format!("In other reports: {}{how}.", others.join(", "));
    (!others.is_empty()).then_some(Block::Marked(Tone::Soft, text))
}

/// A table with a column for each group.
fn by_group(caption: &'static str, first: &'static str, groups: &[Group]) -> Table {
    groups
        .iter()
        .fold(Table::new(caption).words(first), |table, group| {
            let head = shorten(&group.label, HEAD).into_owned();
            table.number(head).titled(group.label.clone())
        })
}

/// Two groups: what changed, figure by figure.
fn changes(service: &ServiceComparison, groups: &[Group]) -> Table {
    let mut table = by_group("What changed", "figure", groups)
        .number("change")
        .interval("limits")
        .titled("limits, from −100% to +100%")
        .optional()
        .words("verdict");
    for figure in &service.figures {
        let Some(change) = figure.changes.first() else {
            continue;
        };
        let level = |at| words::figure(figure, figure.levels.get(at).copied().flatten());
        table.row([
            figure.title.as_str().into(),
            level(0).into(),
            level(1).into(),
            words::change(figure, change).into(),
            limits(figure, change),
            verdict(figure, change.verdict),
        ]);
    }
    table
}

/// The interval of a change.
fn limits(figure: &FigureComparison, change: &Change) -> Cell {
    let (Some(low), Some(high)) = (change.low, change.high) else {
        return Cell::default();
    };
    let interval = Drawn::Interval {
        ends: [low, change.change.unwrap_or(FURTHEST), high],
        span: (-FURTHEST, FURTHEST),
    };
    Cell::from(words::change_limits(figure, change))
        .drawn(interval)
        .tone(tone(change.verdict))
}

const fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Better => Tone::Good,
        Verdict::Worse => Tone::Bad,
        Verdict::Higher | Verdict::Lower => Tone::Strong,
        Verdict::NoDifference | Verdict::NotEnoughData | Verdict::NotJudged => Tone::Soft,
    }
}

fn verdict(figure: &FigureComparison, verdict: Verdict) -> Cell {
    let words = match verdict {
        Verdict::NoDifference => "noise",
        other => other.words(),
    };
    let mut cell = Cell::from(words).tone(tone(verdict));
    if words::needs_caveat(figure, verdict) {
        cell.remark.clone_from(&figure.caveat);
    }
    cell
}

/// Three groups or more: a row for each, the cheapest first, with other figures beside.
fn matrix(
    comparison: &Comparison,
    service: &ServiceComparison,
    beside: &[(&str, &'static str)],
) -> Vec<Block> {
    let find = |name: &str| service.figures.iter().find(|one| one.figure == name);
    let Some((ranking, headline)) = service
        .ranking
        .as_ref()
        .and_then(|ranking| Some((ranking, find(&ranking.figure)?)))
    else {
        let text = "Its cost is known in fewer than two of the reports.";
        return vec![Block::Text(text.to_owned())];
    };
    let beside: Vec<(&FigureComparison, &'static str)> = beside
        .iter()
        .filter(|(name, _)| *name != ranking.figure)
        .filter_map(|(name, title)| Some((find(name)?, *title)))
        .collect();
    let caption = format!("{}, lowest first", headline.title);
    let table = Table::new(caption)
        .words("report")
        .number(headline.title.clone())
        .interval("95% CI")
        .titled("95% CI, from zero")
        .optional()
        .number("against first");
    let table = beside
        .iter()
        .fold(table, |table, (_, title)| table.number(*title).optional());
    let mut table = table.words("verdict").optional();
    for at in order(comparison, ranking) {
        let label = comparison.groups.get(at).map_or("", |group| &group.label);
        let change = change(headline, at);
        let mut row = vec![
            Cell::from(label),
            words::figure(headline, level(headline, at)).into(),
            range(headline, at),
            change.map_or_else(
                || Cell::from("(first)"),
                |one| (words::change(headline, one) + words::mark(one)).into(),
            ),
        ];
        row.extend(beside.iter().map(|(figure, _)| marked(figure, at)));
        row.push(change.map_or_else(Cell::default, |one| verdict(headline, one.verdict)));
        table.row(row);
    }
    let mut blocks = vec![table.into()];
    blocks.extend(sentences::noise(ranking).into_iter().map(Block::Text));
    let legend =
        "▲ ▼ significantly higher or lower than the first; without a mark it may be noise.";
    blocks.extend(Block::remarks([legend.to_owned()]));
    blocks
}

fn level(figure: &FigureComparison, at: usize) -> Option<FigureLevel> {
    figure.levels.get(at).copied().flatten()
}

/// The change from the first group, which has none itself.
fn change(figure: &FigureComparison, at: usize) -> Option<&Change> {
    figure.changes.get(at.checked_sub(1)?)
}

/// The figure of a group; real changes from the first are marked.
fn marked(figure: &FigureComparison, at: usize) -> Cell {
    let mark = change(figure, at).map_or("", words::mark);
    (words::figure(figure, level(figure, at)) + mark).into()
}

/// The limits of the figure of a group.
fn range(figure: &FigureComparison, at: usize) -> Cell {
    let Some(of) = level(figure, at) else {
        return Cell::default();
    };
    let highest = figure.levels.iter().flatten().map(|level| level.high);
    let interval = Drawn::Interval {
        ends: [of.low, of.value, of.high],
        span: (0.0, highest.fold(0.0, f64::max)),
    };
    let tone = change(figure, at).map_or(Tone::Strong, |change| tone(change.verdict));
    Cell::from(words::limits(figure, Some(of)))
        .drawn(interval)
        .tone(tone)
}

/// Positions of groups, in the order of the ranking; those that it does not have last.
fn order(comparison: &Comparison, ranking: &Ranking) -> Vec<usize> {
    let place = |label: &String| ranking.order.iter().position(|one| one == label);
    let groups = comparison.groups.iter().enumerate();
    let mut order: Vec<(usize, usize)> = groups
        .map(|(at, group)| (place(&group.label).unwrap_or(usize::MAX), at))
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, at)| at).collect()
}

/// All figures of all groups.
fn levels(service: &ServiceComparison, groups: &[Group]) -> Block {
    let caption = "▲ ▼ significantly higher or lower than the first";
    let mut table = by_group(caption, "figure", groups);
    for figure in &service.figures {
        let title = Cell::from(&figure.title);
        let levels = (0..groups.len()).map(|at| marked(figure, at));
        table.row([title].into_iter().chain(levels));
    }
    Block::section("All figures", vec![table.into()])
}

/// What handshakes used, where that differs.
fn mixes(service: &ServiceComparison, groups: &[Group]) -> Option<Block> {
    let caption = "Shares of completed handshakes, where they differ";
    let mut table = by_group(caption, "handshakes with", groups);
    for mix in &service.mixes {
        for part in mix.parts.iter().filter(|part| words::differs(part)) {
            let name = Cell::from(format!("{} {}", mix.of, part.name));
            let shares = words::shares(part).into_iter().map(Cell::from);
            table.row([name].into_iter().chain(shares));
        }
    }
    (!table.rows.is_empty()).then(|| Block::section("Negotiated parameters", vec![table.into()]))
}

fn findings(comparison: &Comparison, service: &ServiceComparison) -> Option<Block> {
    if service.findings.is_empty() {
        return None;
    }
    let two = comparison.groups.len() == 2;
    let mut table = Table::new("New, resolved and remaining findings")
        .words("finding")
        .words(if two { "now" } else { "in" })
        .words("what it says")
        .optional();
    for finding in &service.findings {
        let holders = match two {
            true => words::fate(finding, comparison).to_owned(),
            false => words::holders(finding, comparison),
        };
        let title = finding.title.clone();
        table.row([finding.id.clone(), holders, title].map(Cell::from));
    }
    Some(Block::section("Findings", vec![table.into()]))
}
