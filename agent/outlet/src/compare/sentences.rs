//! Conclusions in sentences, for the text and the page alike.

use tlsprof_common::units::{counted, percent};
use tlsprof_report::compare::model::{
    Absence, Change, Comparison, FigureComparison, FigureUnit, LeftOut, Method, Ranking,
    ServiceComparison, Verdict,
};

use super::words::{change_limits, list, signed, value};

/// The answer for a service, in a sentence.
pub(super) fn headline(comparison: &Comparison, service: &ServiceComparison) -> String {
    let name = service.service_name.as_str();
    let Some(ranking) = &service.ranking else {
        return format!("{name}: not enough data in both to compare its cost.");
    };
    let figure = service
        .figures
        .iter()
        .find(|one| one.figure == ranking.figure);
    match (figure, comparison.groups.as_slice()) {
        (Some(figure), [_, _]) => change_in_words(name, figure),
        (Some(figure), groups) => order_in_words(name, figure, ranking, groups.len()),
        (None, _) => String::new(),
    }
}

fn change_in_words(name: &str, of: &FigureComparison) -> String {
    let (Some(before), Some(after), Some(change)) = (
        of.levels.first().copied().flatten(),
        of.levels.get(1).copied().flatten(),
        of.changes.first(),
    ) else {
        return String::new();
    };
    let what = subject(&of.figure);
    let (before, after) = (value(of.unit, before.value), value(of.unit, after.value));
    let limits = change_limits(of, change);
    match change.verdict {
        Verdict::NoDifference => format!(
            "{name}: CPU per {what} {after}, before {before}: no difference beyond noise ({limits})."
        ),
        Verdict::NotEnoughData | Verdict::NotJudged => format!(
            "{name}: CPU per {what} {after}, before {before}: not enough data to tell whether the \
             difference is real ({limits})."
        ),
        real => format!(
            "{name}: CPU per {what} {after} instead of {before}: {}. Verdict: {}.",
            less_or_more(change),
            real.words()
        ),
    }
}

/// A real change: `74% less (69% to 78%)`.
fn less_or_more(change: &Change) -> String {
    let (Some(by), Some(low), Some(high)) = (change.change, change.low, change.high) else {
        return "from nothing".to_owned();
    };
    let size = |by: f64| {
        signed(FigureUnit::Number, by.abs())
            .trim_start_matches('+')
            .to_owned()
    };
    if by < 0.0 {
        format!("{} less ({} to {})", size(by), size(high), size(low))
    } else {
        format!("{} more ({} to {})", size(by), size(low), size(high))
    }
}

fn order_in_words(name: &str, of: &FigureComparison, ranking: &Ranking, groups: usize) -> String {
    let (Some(best), Some(worst)) = (ranking.order.first(), ranking.order.last()) else {
        return String::new();
    };
    let what = subject(&of.figure);
    if ranking.alike.iter().any(|run| run.len() == groups) {
        return format!(
            "{name}: CPU per {what} does not differ between the {groups} beyond noise."
        );
    }
    let first = ranking
        .alike
        .first()
        .filter(|run| run.first() == Some(best));
    let best = first.map_or_else(|| best.clone(), |run| list(run));
    let last = ranking.alike.last().filter(|run| run.last() == Some(worst));
    let worst = last.map_or_else(|| worst.clone(), |run| list(run));
    format!("{name}: CPU per {what} is lowest in {best} and highest in {worst}.")
}

/// What a headline speaks of.
fn subject(figure: &str) -> &'static str {
    match figure {
        "cpu_per_request" => "request",
        "cpu_per_full_handshake" => "full handshake",
        "cpu_per_resumed_handshake" => "resumed handshake",
        _ => "MB encrypted",
    }
}

/// Which groups differ by noise alone, in sentences.
pub(super) fn noise(ranking: &Ranking) -> Vec<String> {
    let sentence = |run: &Vec<String>| {
        format!(
            "By the figure “{}”, differences between {} are noise.",
            ranking.title,
            list(run)
        )
    };
    ranking.alike.iter().map(sentence).collect()
}

/// Services that are not compared, in sentences.
pub(super) fn left_out(all: &[LeftOut]) -> Vec<String> {
    let of = |reason| -> Vec<String> {
        let those = all.iter().filter(|one| one.reason == reason);
        those.map(|one| one.service_name.clone()).collect()
    };
    let mut told: Vec<String> = all
        .iter()
        .filter(|one| one.reason == Absence::OnlyThere)
        .map(|one| match one.labels.as_slice() {
            [] => format!("{} is in none of the reports.", one.service_name),
            labels => format!("{} is only in {}.", one.service_name, list(labels)),
        })
        .collect();
    let clients = of(Absence::OnlyAClient);
    if !clients.is_empty() {
        told.push(format!(
            "Only clients, compared only if named by --service: {}.",
            list(&clients)
        ));
    }
    let silent = of(Absence::Silent);
    if !silent.is_empty() {
        told.push(format!("No connection or handshake: {}.", list(&silent)));
    }
    told
}

/// How sure all this is, in sentences.
pub(super) fn method(comparison: &Comparison) -> Vec<String> {
    let Method {
        changes_judged,
        confidence_of_all,
        assumed_spread,
        ..
    } = comparison.method;
    let repeats = comparison.groups.iter().any(|group| group.runs.len() > 1);
    let spread = if repeats {
        "corrected by the variation among the repeats"
    } else {
        "if yours differ, repeat the runs (NAME=FILE NAME=FILE) or set --noise"
    };
    vec![
        format!(
            "Noise: no difference beyond run-to-run variation. {} judged; all confidence intervals \
             of changes hold together with {} probability, so at most one comparison in {:.0} has a \
             false verdict. Single figures have 95% confidence intervals.",
            counted(u64::from(changes_judged), "change was", "changes were"),
            whole_percent(confidence_of_all),
            (1.0 / (1.0 - confidence_of_all)).round(),
        ),
        format!(
            "Assumed run-to-run variation of the same server under the same load: {} (standard \
             deviation); {spread}.",
            percent(assumed_spread)
        ),
    ]
}

fn whole_percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}
