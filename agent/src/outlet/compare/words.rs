//! Figures, changes and conclusions in words, for the text and the page alike.

use crate::compare::model::{
    Change, Comparison, FigureComparison, FigureLevel, FindingPresence, LeftOut, Method, MixPart,
    Ranking, ServiceComparison, Verdict,
};
use crate::outlet::terminal::printable;
use crate::units::{count, counted, percent, time};

/// Changes by more than this are told as a factor.
const TENFOLD: f64 = 9.0;
/// Parts of a mix whose share differs by less between groups are not worth a line.
const WORTH_A_LINE: f64 = 0.01;
/// Figures beyond this have no everyday form.
const EVERYDAY: std::ops::Range<f64> = 1e-12..1e9;

/// A figure with its unit; `-` where it is not known.
pub(super) fn figure(of: &FigureComparison, level: Option<FigureLevel>) -> String {
    level.map_or_else(|| "-".to_owned(), |level| value(&of.unit, level.value))
}

/// Its limits.
pub(super) fn limits(of: &FigureComparison, level: Option<FigureLevel>) -> String {
    level.map_or_else(String::new, |level| {
        format!(
            "{} to {}",
            value(&of.unit, level.low),
            value(&of.unit, level.high)
        )
    })
}

/// A value in a unit of the model.
pub(super) fn value(unit: &str, value: f64) -> String {
    if value != 0.0 && !EVERYDAY.contains(&value.abs()) {
        return format!("{value:.1e}");
    }
    match unit {
        "seconds" => time(value),
        "share" => percent(value),
        _ if value >= 1000.0 => whole(value),
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ if value == 0.0 => "0".to_owned(),
        _ if value < 0.01 => format!("{value:.4}"),
        _ => format!("{value:.2}"),
    }
}

/// With separators.
fn whole(value: f64) -> String {
    let digits = format!("{value:.0}");
    digits.parse().map_or(digits, count)
}

/// A change: `-66%`, `+12.3 points`, `12 times`.
pub(super) fn change(of: &FigureComparison, change: &Change) -> String {
    match change.change {
        Some(by) => signed(&of.unit, by),
        None if change.low.is_some() => "from none".to_owned(),
        None => String::new(),
    }
}

/// The limits of a change.
pub(super) fn change_limits(of: &FigureComparison, change: &Change) -> String {
    match (change.low, change.high) {
        (Some(low), Some(high)) => {
            format!("{} to {}", signed(&of.unit, low), signed(&of.unit, high))
        }
        _ => String::new(),
    }
}

fn signed(unit: &str, by: f64) -> String {
    // What rounds to nothing has no sign.
    let by = if by.abs() < 0.0005 { 0.0 } else { by };
    if unit == "share" {
        return format!("{:+.1} points", by * 100.0);
    }
    if by > TENFOLD {
        return format!("{} times", value("number", 1.0 + by));
    }
    let percent = by * 100.0;
    if percent.abs() < 9.95 {
        format!("{percent:+.1}%")
    } else {
        format!("{percent:+.0}%")
    }
}

/// What real changes are marked with in a matrix.
pub(super) const fn mark(change: &Change) -> &'static str {
    match change.low {
        Some(low) if change.verdict.is_real() && low > 0.0 => " ▲",
        Some(_) if change.verdict.is_real() => " ▼",
        _ => "",
    }
}

/// Whether it must be told beside a verdict what the figure depends on.
pub(super) fn needs_caveat(of: &FigureComparison, verdict: Verdict) -> bool {
    (verdict.is_real() || verdict == Verdict::NotJudged) && !of.caveat.is_empty()
}

/// The answer for a service, in a sentence.
pub(super) fn headline(comparison: &Comparison, service: &ServiceComparison) -> String {
    let name = printable(&service.service_name);
    let Some(ranking) = &service.ranking else {
        return format!("{name}: too little was seen in both to compare its cost.");
    };
    let figure = service
        .figures
        .iter()
        .find(|one| one.figure == ranking.figure);
    match (figure, comparison.groups.as_slice()) {
        (Some(figure), [_, _]) => change_in_words(&name, figure),
        (Some(figure), groups) => order_in_words(&name, figure, ranking, groups.len()),
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
    let (before, after) = (value(&of.unit, before.value), value(&of.unit, after.value));
    let limits = change_limits(of, change);
    match change.verdict {
        Verdict::NoDifference => format!(
            "{name}: {what} takes {after} of CPU, {before} before: no difference beyond noise ({limits})."
        ),
        Verdict::NotEnoughData | Verdict::NotJudged => format!(
            "{name}: {what} takes {after} of CPU, {before} before; too little data to tell whether that is real ({limits})."
        ),
        real => format!(
            "{name}: {what} takes {after} of CPU instead of {before}: {}. That is {}.",
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
        signed("number", by.abs())
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
            "{name}: {what} costs the same in all {groups} as far as can be told: the differences are noise."
        );
    }
    let first = ranking
        .alike
        .first()
        .filter(|run| run.first() == Some(best));
    let best = first.map_or_else(|| best.clone(), |run| list(run));
    let last = ranking.alike.last().filter(|run| run.last() == Some(worst));
    let worst = last.map_or_else(|| worst.clone(), |run| list(run));
    format!("{name}: {what} takes least CPU in {best}, and most in {worst}.")
}

/// What a headline speaks of.
fn subject(figure: &str) -> &'static str {
    match figure {
        "cpu_per_request" => "a request",
        "cpu_per_full_handshake" => "a full handshake",
        "cpu_per_resumed_handshake" => "a resumed handshake",
        _ => "a MB encrypted",
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

fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Parts of a mix that differ between groups.
pub(super) fn differs(part: &MixPart) -> bool {
    let shares = || part.shares.iter().flatten().copied();
    let (low, high) = (shares().fold(1.0, f64::min), shares().fold(0.0, f64::max));
    high - low >= WORTH_A_LINE
}

/// `100.0% to 0.0%`: the shares of a part in all groups.
pub(super) fn shares(part: &MixPart) -> Vec<String> {
    let shares = part.shares.iter();
    shares
        .map(|share| share.map_or_else(|| "-".to_owned(), percent))
        .collect()
}

/// The groups that have a finding: `all`, or their labels.
pub(super) fn holders(finding: &FindingPresence, comparison: &Comparison) -> String {
    let groups = presence(finding, comparison);
    let groups = groups.iter().zip(&comparison.groups);
    let holders: Vec<String> = groups
        .filter(|(presence, _)| *presence != "-")
        .map(|(presence, group)| match presence.as_str() {
            "yes" => group.label.clone(),
            some => format!("{} ({some})", group.label),
        })
        .collect();
    if holders.len() == comparison.groups.len() && !holders.iter().any(|one| one.ends_with(')')) {
        return "all".to_owned();
    }
    list(&holders)
}

/// `3 of 3`, by group.
pub(super) fn presence(finding: &FindingPresence, comparison: &Comparison) -> Vec<String> {
    let groups = finding.runs.iter().zip(&comparison.groups);
    groups
        .map(|(runs, group)| match (*runs as usize, group.runs.len()) {
            (0, _) => "-".to_owned(),
            (_, 1) => "yes".to_owned(),
            (some, all) => format!("{some} of {all}"),
        })
        .collect()
}

/// What became of a finding between two groups: `gone`, `new`, `still there` or `in some`.
pub(super) fn fate(finding: &FindingPresence, comparison: &Comparison) -> &'static str {
    let all = comparison.groups.iter().map(|group| group.runs.len());
    let mut shares = finding
        .runs
        .iter()
        .zip(all)
        .map(|(runs, all)| (*runs as usize, all));
    match (shares.next(), shares.next()) {
        (Some((some, all)), Some((0, _))) if some == all => "gone",
        (Some((0, _)), Some((some, all))) if some == all => "new",
        (Some((a, all_a)), Some((b, all_b))) if a == all_a && b == all_b => "still there",
        _ => "in some runs",
    }
}

/// Services that are not compared, in sentences.
pub(super) fn left_out(all: &[LeftOut]) -> Vec<String> {
    let of = |reason: &str| -> Vec<String> {
        let those = all.iter().filter(|one| one.reason == reason);
        those
            .map(|one| printable(&one.service_name).into_owned())
            .collect()
    };
    let mut told: Vec<String> = all
        .iter()
        .filter(|one| one.reason == "only_there")
        .map(|one| match one.labels.as_slice() {
            [] => format!(
                "{} is in none of the reports.",
                printable(&one.service_name)
            ),
            labels => format!(
                "{} is only in {}.",
                printable(&one.service_name),
                list(labels)
            ),
        })
        .collect();
    let clients = of("only_a_client");
    if !clients.is_empty() {
        told.push(format!(
            "Only clients, not compared unless named by --service: {}.",
            list(&clients)
        ));
    }
    let silent = of("silent");
    if !silent.is_empty() {
        told.push(format!(
            "Without a connection or a handshake: {}.",
            list(&silent)
        ));
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
        "corrected by what the repeats show"
    } else {
        "if that is not so here, repeat the runs (NAME=FILE NAME=FILE) or say so (--noise)"
    };
    vec![
        format!(
            "Noise: no difference beyond what runs differ by themselves. {} judged; with {} probability all intervals of changes hold together, so that \
             at most one comparison in {:.0} has a false verdict. The range of a single figure is at 95%.",
            counted(u64::from(changes_judged), "change was", "changes were"),
            whole_percent(confidence_of_all),
            (1.0 / (1.0 - confidence_of_all)).round(),
        ),
        format!(
            "Runs of the same server under the same load are taken to differ by {} by themselves \
             (standard deviation): {spread}.",
            percent(assumed_spread)
        ),
    ]
}

fn whole_percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}
