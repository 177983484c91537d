//! The comparison as one page.

use maud::{Markup, html};

use crate::compare::model::{
    Change, Comparison, FigureComparison, Group, Ranking, ServiceComparison, Verdict,
};
use crate::outlet::html::table::{Cell, Head, table};
use crate::outlet::html::{anchor, chart, page};
use crate::outlet::terminal::printable;
use crate::units::{counted, time};

use super::{sentences, words};

/// Changes by more than this are drawn at the edge.
const FURTHEST: f64 = 1.0;

/// The comparison as a page of its own.
pub fn render(comparison: &Comparison) -> String {
    let labels: Vec<&str> = comparison
        .groups
        .iter()
        .map(|one| one.label.as_str())
        .collect();
    let content = html! {
        header {
            h1 { "tlsprof · comparison of " (labels.join(", ")) }
            @for service in &comparison.services {
                p class="lead" { (sentences::headline(comparison, service)) }
            }
            (warnings(comparison))
            (reports(comparison))
        }
        main {
            @for (at, service) in comparison.services.iter().enumerate() {
                section aria-labelledby=(anchor("service", at)) { (of_service(comparison, at, service)) }
            }
        }
        footer {
            @for note in sentences::left_out(&comparison.left_out) { p { (note) } }
            @for note in sentences::method(comparison) { p { (note) } }
            p { "Made by tlsprof " (printable(&comparison.tlsprof_version)) "." }
        }
    };
    page(&format!("tlsprof: {}", labels.join(", ")), &content)
}

fn warnings(comparison: &Comparison) -> Markup {
    html! {
        @if !comparison.warnings.is_empty() {
            div class="card alarm" {
                p { strong { "Read with care" } }
                ul { @for warning in &comparison.warnings { li { (printable(warning)) } } }
            }
        }
    }
}

fn reports(comparison: &Comparison) -> Markup {
    let heads = [
        Head::Left("report"),
        Head::Right("runs"),
        Head::Right("time"),
        Head::Left("host"),
        Head::Left("file"),
    ];
    let rows = comparison.groups.iter().enumerate().map(|(at, group)| {
        let first = group.runs.first();
        let seconds = group.runs.iter().map(|run| run.duration_seconds).sum();
        let files: Vec<&str> = group.runs.iter().map(|run| run.file.as_str()).collect();
        let base = if at == 0 { " (first)" } else { "" };
        vec![
            Cell::Text(format!("{}{base}", group.label)),
            Cell::Number(group.runs.len().to_string()),
            Cell::Number(time(seconds)),
            Cell::Text(first.map_or_else(String::new, |run| {
                let cpus = counted(u64::from(run.cpus), "CPU", "CPUs");
                printable(&format!("{}, Linux {}, {cpus}", run.hostname, run.kernel)).into_owned()
            })),
            Cell::Text(files.join(", ")),
        ]
    });
    table("What is compared", &heads, rows.collect())
}

fn of_service(comparison: &Comparison, at: usize, service: &ServiceComparison) -> Markup {
    let names: Vec<_> = service
        .names
        .iter()
        .flatten()
        .filter(|name| **name != service.service_name)
        .map(|name| printable(name))
        .collect();
    html! {
        h2 id=(anchor("service", at)) { (printable(&service.service_name)) }
        @if !names.is_empty() {
            p class="soft" { "In other reports " (names.join(", ")) "." }
        }
        @if comparison.groups.len() == 2 {
            (changes(service, &comparison.groups))
        } @else {
            (matrix(comparison, service))
            (levels(service, &comparison.groups))
        }
        (mixes(service, &comparison.groups))
        (findings(comparison, service))
        @for note in &service.notes { p class="soft small" { (printable(note)) } }
    }
}

/// Two groups: what changed, figure by figure, with the intervals drawn.
fn changes(service: &ServiceComparison, groups: &[Group]) -> Markup {
    let mut heads = vec![Head::Left("figure")];
    heads.extend(groups.iter().map(|group| Head::Right(&group.label)));
    heads.extend([
        Head::Right("change"),
        Head::Left("limits, from −100% to +100%"),
        Head::Left("verdict"),
    ]);
    let rows = service.figures.iter().filter_map(|figure| {
        let change = figure.changes.first()?;
        let level = |at| words::figure(figure, figure.levels.get(at).copied().flatten());
        Some(vec![
            Cell::Text(figure.title.trim().to_owned()),
            Cell::Number(level(0)),
            Cell::Number(level(1)),
            Cell::Number(words::change(figure, change)),
            Cell::Chart(limits(figure, change)),
            Cell::Markup(verdict(figure, change.verdict)),
        ])
    });
    table("What changed", &heads, rows.collect())
}

/// The interval of a change, drawn and in words.
fn limits(figure: &FigureComparison, change: &Change) -> Markup {
    let (Some(low), Some(high)) = (change.low, change.high) else {
        return html! {};
    };
    let middle = change.change.unwrap_or(FURTHEST);
    let ends = [low, middle, high];
    html! {
        (chart::interval(class(change.verdict), ends, (-FURTHEST, FURTHEST), Some(0.0)))
        span class="soft small" { (words::change_limits(figure, change)) }
    }
}

const fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Higher => "higher",
        Verdict::Lower => "lower",
        Verdict::NoDifference | Verdict::NotEnoughData | Verdict::NotJudged => "noise",
    }
}

fn verdict(figure: &FigureComparison, verdict: Verdict) -> Markup {
    html! {
        span class={ "tag " (class(verdict)) } { (verdict.words()) }
        @if words::needs_caveat(figure, verdict) {
            " " span class="soft small" { (figure.caveat) }
        }
    }
}

/// Three groups or more: a row each with its interval, the cheapest first.
fn matrix(comparison: &Comparison, service: &ServiceComparison) -> Markup {
    let Some((ranking, headline)) = service.ranking.as_ref().and_then(|ranking| {
        let mut figures = service.figures.iter();
        Some((ranking, figures.find(|one| one.figure == ranking.figure)?))
    }) else {
        return html! { p { "Its cost is not known in two of the reports." } };
    };
    let highest = headline
        .levels
        .iter()
        .flatten()
        .map(|level| level.high)
        .fold(0.0, f64::max);
    let heads = [
        Head::Left("report"),
        Head::Right(&headline.title),
        Head::Left("95% range, from zero"),
        Head::Right("against first"),
        Head::Left("verdict"),
    ];
    let rows = ranking.order.iter().filter_map(|label| {
        let at = comparison
            .groups
            .iter()
            .position(|group| &group.label == label)?;
        let level = headline.levels.get(at).copied().flatten()?;
        let change = at.checked_sub(1).and_then(|at| headline.changes.get(at));
        let shade = change.map_or("higher", |change| class(change.verdict));
        let ends = [level.low, level.value, level.high];
        Some(vec![
            Cell::Text(label.clone()),
            Cell::Number(words::figure(headline, Some(level))),
            Cell::Chart(html! {
                (chart::interval(shade, ends, (0.0, highest), None))
                span class="soft small" { (words::limits(headline, Some(level))) }
            }),
            Cell::Number(
                change.map_or_else(|| "(first)".to_owned(), |one| words::change(headline, one)),
            ),
            Cell::Markup(change.map_or_else(|| html! {}, |one| verdict(headline, one.verdict))),
        ])
    });
    html! {
        (table(&format!("{}, the cheapest first", headline.title), &heads, rows.collect()))
        (noise(ranking))
    }
}

fn noise(ranking: &Ranking) -> Markup {
    html! { @for sentence in sentences::noise(ranking) { p { (sentence) } } }
}

/// All figures of all groups; real changes from the first are marked.
fn levels(service: &ServiceComparison, groups: &[Group]) -> Markup {
    let mut heads = vec![Head::Left("figure")];
    heads.extend(groups.iter().map(|group| Head::Right(&group.label)));
    let rows = service.figures.iter().map(|figure| {
        let mut cells = vec![Cell::Text(figure.title.trim().to_owned())];
        for (at, level) in figure.levels.iter().enumerate() {
            let change = at.checked_sub(1).and_then(|at| figure.changes.get(at));
            let mark = change.map_or("", words::mark);
            cells.push(Cell::Number(words::figure(figure, *level) + mark));
        }
        cells
    });
    html! {
        h3 { "All figures" }
        (table("▲ ▼ higher and lower than the first, and real", &heads, rows.collect()))
    }
}

fn mixes(service: &ServiceComparison, groups: &[Group]) -> Markup {
    let parts = service.mixes.iter().flat_map(|mix| {
        let parts = mix.parts.iter().filter(|part| words::differs(part));
        parts.map(|part| (mix.of.as_str(), part))
    });
    let rows: Vec<Vec<Cell>> = parts
        .map(|(of, part)| {
            let mut cells = vec![Cell::Text(format!("{of} {}", printable(&part.name)))];
            cells.extend(words::shares(part).into_iter().map(Cell::Number));
            cells
        })
        .collect();
    let mut heads = vec![Head::Left("handshakes with")];
    heads.extend(groups.iter().map(|group| Head::Right(&group.label)));
    html! {
        @if !rows.is_empty() {
            h3 { "What handshakes used" }
            (table("Shares of completed handshakes, where they differ; counted", &heads, rows))
        }
    }
}

fn findings(comparison: &Comparison, service: &ServiceComparison) -> Markup {
    if service.findings.is_empty() {
        return html! {};
    }
    let two = comparison.groups.len() == 2;
    let mut heads = vec![Head::Left("finding"), Head::Left("what it says")];
    if two {
        heads.push(Head::Left("now"));
    } else {
        heads.extend(
            comparison
                .groups
                .iter()
                .map(|group| Head::Left(&group.label)),
        );
    }
    let rows = service.findings.iter().map(|finding| {
        let mut cells = vec![
            Cell::Text(printable(&finding.id).into_owned()),
            Cell::Text(printable(&finding.title).into_owned()),
        ];
        if two {
            cells.push(Cell::Text(words::fate(finding, comparison).to_owned()));
        } else {
            cells.extend(
                words::presence(finding, comparison)
                    .into_iter()
                    .map(Cell::Text),
            );
        }
        cells
    });
    html! {
        h3 { "Findings" }
        (table("Findings that came, went and stayed", &heads, rows.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::outlet::html::check;
    use crate::outlet::terminal::golden;

    #[test]
    fn snapshot_of_two_reports() {
        let page = render(&sample::two());
        check::page(&page);
        golden::snapshot("compare-two.html", &page);
    }

    #[test]
    fn snapshot_of_a_matrix() {
        let page = render(&sample::matrix());
        check::page(&page);
        golden::snapshot("compare-matrix.html", &page);
    }

    #[test]
    fn names_are_text_and_never_markup() {
        let hostile = "<img src=x onerror=alert(1)>\x1b[2J";
        let mut comparison = sample::two();
        for service in &mut comparison.services {
            service.service_name = hostile.to_owned();
            service.notes.push(hostile.to_owned());
            for finding in &mut service.findings {
                finding.title = hostile.to_owned();
            }
        }
        comparison.warnings.push(hostile.to_owned());
        let page = render(&comparison);
        assert!(!page.contains("<img") && !page.contains('\x1b'));
        assert!(page.contains("&lt;img"));
    }
}
