//! Figures and changes in words, for the text and the page alike.

use tlsprof_common::units::{count, percent, time};
use tlsprof_report::compare::model::{
    Change, Comparison, FigureComparison, FigureLevel, FigureUnit, FindingPresence, MixPart,
    Verdict,
};

/// Changes by more than this are told as a factor.
const TENFOLD: f64 = 9.0;
/// Parts of a mix whose share differs by less between groups are not worth a line.
const WORTH_A_LINE: f64 = 0.01;
/// Figures beyond this have no everyday form.
const EVERYDAY: std::ops::Range<f64> = 1e-12..1e9;

/// A figure with its unit; `-` where it is not known.
pub(super) fn figure(of: &FigureComparison, level: Option<FigureLevel>) -> String {
    level.map_or_else(|| "-".to_owned(), |level| value(of.unit, level.value))
}

/// Its limits.
pub(super) fn limits(of: &FigureComparison, level: Option<FigureLevel>) -> String {
    level.map_or_else(String::new, |level| {
        format!(
            "{} to {}",
            value(of.unit, level.low),
            value(of.unit, level.high)
        )
    })
}

/// A value in a unit of the model.
pub(super) fn value(unit: FigureUnit, value: f64) -> String {
    if value != 0.0 && !EVERYDAY.contains(&value.abs()) {
        return format!("{value:.1e}");
    }
    match unit {
        FigureUnit::Seconds => time(value),
        FigureUnit::Share => percent(value),
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
        Some(by) => signed(of.unit, by),
        None if change.low.is_some() => "from none".to_owned(),
        None => String::new(),
    }
}

/// The limits of a change.
pub(super) fn change_limits(of: &FigureComparison, change: &Change) -> String {
    match (change.low, change.high) {
        (Some(low), Some(high)) => {
            format!("{} to {}", signed(of.unit, low), signed(of.unit, high))
        }
        _ => String::new(),
    }
}

/// With its sign.
pub(super) fn signed(unit: FigureUnit, by: f64) -> String {
    // What rounds to nothing has no sign.
    let by = if by.abs() < 0.0005 { 0.0 } else { by };
    if unit == FigureUnit::Share {
        return format!("{:+.1} points", by * 100.0);
    }
    if by > TENFOLD {
        return format!("{} times", value(FigureUnit::Number, 1.0 + by));
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

/// `a, b and c`.
pub(super) fn list(names: &[String]) -> String {
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

/// The groups that have a finding: `all`, or their labels, with `3 of 5` where some runs have it.
pub(super) fn holders(finding: &FindingPresence, comparison: &Comparison) -> String {
    let groups = finding.runs.iter().zip(&comparison.groups);
    if groups
        .clone()
        .all(|(runs, group)| *runs as usize == group.runs.len())
    {
        return "all".to_owned();
    }
    let holders: Vec<String> = groups
        .filter_map(|(runs, group)| match (*runs as usize, group.runs.len()) {
            (0, _) => None,
            (some, all) if some == all => Some(group.label.clone()),
            (some, all) => Some(format!("{} ({some} of {all})", group.label)),
        })
        .collect();
    list(&holders)
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
