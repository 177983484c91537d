//! Comparison of reports: what changed, and whether it is real.
//!
//! Pure: reports in, a [`Comparison`] out. It stands beside the way of the data, since its
//! evidence are reports that were written before. The statistics are in [`statistics`], in
//! words in `docs/compare.md`.

pub mod figure;
pub mod input;
mod matching;
mod mixes;
pub mod model;
mod reading;
pub mod statistics;
mod verdict;
mod warnings;

use crate::outlet::report::model::{Report, Service};
use figure::{Figure, Sense};
use matching::Matched;
use model::{
    Change, Comparison, FigureComparison, FigureLevel, Group, LeftOut, Method, Ranking, Run,
    SCHEMA_VERSION, ServiceComparison,
};
use reading::Reading;
use statistics::{Contrast, Estimate, Level, Noise, Spread};

/// The probability that all verdicts are right together is at least this.
const CONFIDENCE: f64 = 0.95;
/// What the assumed spread is worth against observed repeats, in degrees of freedom. So
/// many were the runs, less one, from which the default was measured: `docs/compare.md`.
const ASSUMED_WEIGHT: f64 = 10.0;

/// A report with its file.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledRun {
    /// The file, as the user named it.
    pub file: String,
    /// What it holds.
    pub report: Report,
}

/// Reports with one label.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledRuns {
    /// The label.
    pub label: String,
    /// Its reports; at least one.
    pub runs: Vec<LabelledRun>,
}

/// A service that has other names in other reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Its name in the first reports.
    pub first: String,
    /// Its names in others, beside that; the first that is there counts.
    pub others: Vec<String>,
}

impl Pair {
    /// A service with one name.
    pub fn same(name: &str) -> Self {
        Self {
            first: name.to_owned(),
            others: Vec::new(),
        }
    }

    fn candidates(&self) -> Vec<&str> {
        let others = self.others.iter().map(String::as_str);
        others.chain([self.first.as_str()]).collect()
    }
}

/// Compares groups with the first of them. `spread` is the assumed spread between runs, a
/// share; `pairs` names the services, all when it is empty.
pub fn compare(groups: &[LabelledRuns], pairs: &[Pair], spread: f64) -> Comparison {
    let noise = Noise {
        spread,
        weight: ASSUMED_WEIGHT,
    };
    let matching = matching::matching(groups, pairs);
    let labels: Vec<&str> = groups.iter().map(|group| group.label.as_str()).collect();
    let measured: Vec<Measured<'_>> = matching
        .matched
        .into_iter()
        .map(|matched| Measured::of(groups, matched, noise))
        .collect();
    let judged = measured.iter().map(Measured::changes).sum();
    let method = method(judged, noise);
    Comparison {
        comparison_schema_version: SCHEMA_VERSION,
        tlsprof_version: env!("CARGO_PKG_VERSION").to_owned(),
        groups: groups.iter().map(group).collect(),
        method,
        services: measured
            .iter()
            .map(|one| one.comparison(&labels, method))
            .collect(),
        left_out: matching
            .left_out
            .into_iter()
            .map(|(service_name, places, reason)| LeftOut {
                service_name,
                labels: places
                    .iter()
                    .filter_map(|&at| labels.get(at).map(ToString::to_string))
                    .collect(),
                reason: reason.to_owned(),
            })
            .collect(),
        warnings: warnings::of(groups),
    }
}

fn method(judged: u32, noise: Noise) -> Method {
    Method {
        changes_judged: judged,
        confidence_of_all: CONFIDENCE,
        confidence_of_each: 1.0 - (1.0 - CONFIDENCE) / f64::from(judged.max(1)),
        confidence_of_figures: CONFIDENCE,
        assumed_spread: noise.spread,
        assumed_spread_weight: noise.weight,
    }
}

fn group(group: &LabelledRuns) -> Group {
    let run = |run: &LabelledRun| {
        let report = &run.report;
        let command = report.command.as_ref();
        Run {
            file: run.file.clone(),
            started_at: report.started_at.clone(),
            duration_seconds: report.duration_seconds,
            hostname: report.host.hostname.clone(),
            kernel: report.host.kernel.clone(),
            cpus: report.host.cpus,
            tlsprof_version: report.tlsprof_version.clone(),
            command: command
                .map(|one| one.arguments.join(" "))
                .unwrap_or_default(),
        }
    };
    Group {
        label: group.label.clone(),
        runs: group.runs.iter().map(run).collect(),
    }
}

/// A service's figures in all groups, before anything is judged: how many there are decides
/// how sure each must be.
struct Measured<'a> {
    matched: Matched,
    /// The service in the runs of each group, with the run.
    found: Vec<Vec<(&'a Report, &'a Service)>>,
    figures: Vec<(Figure, Vec<Option<Level>>)>,
}

impl<'a> Measured<'a> {
    fn of(groups: &'a [LabelledRuns], matched: Matched, noise: Noise) -> Self {
        let found: Vec<Vec<_>> = groups
            .iter()
            .zip(&matched.names)
            .map(|(group, name)| services(group, name.as_deref()))
            .collect();
        let figures = Figure::ALL
            .into_iter()
            .map(|figure| (figure, levels(&found, figure, noise)))
            .filter(|(_, levels)| levels.iter().any(Option::is_some))
            .collect();
        Self {
            matched,
            found,
            figures,
        }
    }

    /// Changes from the first group that can be judged.
    fn changes(&self) -> u32 {
        let judged = |(_, levels): &(Figure, Vec<Option<Level>>)| match levels.split_first() {
            Some((Some(_), others)) => others.iter().flatten().count(),
            _ => 0,
        };
        let figures = self.figures.iter();
        let figures = figures.filter(|(figure, _)| figure.sense() != Sense::Load);
        let number: usize = figures.map(judged).sum();
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    fn comparison(&self, labels: &[&str], method: Method) -> ServiceComparison {
        let first = self.found.iter().flatten().next();
        let names = &self.matched.names;
        ServiceComparison {
            service_name: names.iter().flatten().next().cloned().unwrap_or_default(),
            names: names.clone(),
            matched_by: self.matched.by.to_owned(),
            role: first
                .map_or("server", |(_, one)| Reading::new(one, 0.0).role())
                .to_owned(),
            figures: self
                .figures
                .iter()
                .map(|(figure, levels)| figure_comparison(*figure, levels, labels, method))
                .collect(),
            ranking: self.ranking(labels),
            mixes: mixes::of(&self.found),
            findings: mixes::findings(&self.found),
            notes: warnings::of_service(&self.found, labels),
        }
    }

    /// By the first headline that two groups know.
    fn ranking(&self, labels: &[&str]) -> Option<Ranking> {
        let known = |figure: &Figure| {
            let mut figures = self.figures.iter();
            let levels = &figures.find(|(one, _)| one == figure)?.1;
            let levels = levels.iter().zip(labels);
            let known: Vec<(Level, &str)> = levels
                .filter_map(|(level, label)| Some(((*level)?, *label)))
                .collect();
            (known.len() > 1).then_some((*figure, known))
        };
        let (figure, mut known) = Figure::HEADLINES.iter().find_map(known)?;
        known.sort_by(|a, b| a.0.shown().total_cmp(&b.0.shown()));
        let (levels, order): (Vec<Level>, Vec<&str>) = known.into_iter().unzip();
        let pairs = u32::try_from(levels.len() * (levels.len() - 1) / 2).unwrap_or(u32::MAX);
        let each = 1.0 - (1.0 - CONFIDENCE) / f64::from(pairs);
        let name = |at: &usize| order.get(*at).map(ToString::to_string);
        let alike = verdict::alike(&levels, each);
        Some(Ranking {
            figure: figure.label(),
            title: figure.title().to_owned(),
            alike: alike
                .iter()
                .map(|run| run.iter().filter_map(name).collect())
                .collect(),
            order: order.iter().map(ToString::to_string).collect(),
        })
    }
}

fn services<'a>(group: &'a LabelledRuns, name: Option<&str>) -> Vec<(&'a Report, &'a Service)> {
    let of = |run: &'a LabelledRun| {
        let mut services = run.report.services.iter();
        let service = services.find(|one| Some(one.service_name.as_str()) == name)?;
        Some((&run.report, service))
    };
    group.runs.iter().filter_map(of).collect()
}

fn levels(found: &[Vec<(&Report, &Service)>], figure: Figure, noise: Noise) -> Vec<Option<Level>> {
    let estimates: Vec<Vec<Estimate>> = found
        .iter()
        .map(|runs| {
            let of = runs
                .iter()
                .map(|(run, one)| Reading::new(one, run.duration_seconds));
            of.filter_map(|reading| reading.estimate(figure)).collect()
        })
        .collect();
    let spread = Spread::of(estimates.iter().map(Vec::as_slice), noise);
    let level = |runs: &Vec<Estimate>| Level::of(runs, figure.scale(), spread);
    estimates.iter().map(level).collect()
}

fn figure_comparison(
    figure: Figure,
    levels: &[Option<Level>],
    labels: &[&str],
    method: Method,
) -> FigureComparison {
    let first = levels.first().copied().flatten();
    let others = levels.iter().zip(labels).skip(1);
    FigureComparison {
        figure: figure.label(),
        title: figure.title().to_owned(),
        unit: figure.unit().label().to_owned(),
        sense: figure.sense().label().to_owned(),
        caveat: figure.caveat().to_owned(),
        levels: levels
            .iter()
            .map(|level| level.as_ref().map(|level| shown(level, method)))
            .collect(),
        changes: others
            .map(|(level, label)| change(figure, first.as_ref(), level.as_ref(), label, method))
            .collect(),
    }
}

fn shown(level: &Level, method: Method) -> FigureLevel {
    let (low, high) = level.limits(method.confidence_of_figures);
    FigureLevel {
        value: level.shown(),
        low,
        // JSON knows no infinity.
        high: high.min(f64::MAX),
        runs: u32::try_from(level.runs).unwrap_or(u32::MAX),
    }
}

fn change(
    figure: Figure,
    first: Option<&Level>,
    level: Option<&Level>,
    label: &str,
    method: Method,
) -> Change {
    let contrast = first
        .zip(level)
        .map(|(first, level)| Contrast::between(first, level, method.confidence_of_each));
    let finite = |of: fn(&Contrast) -> f64| contrast.as_ref().map(of).filter(|f| f.is_finite());
    Change {
        label: label.to_owned(),
        change: finite(|contrast| contrast.change),
        low: finite(|contrast| contrast.low),
        high: finite(|contrast| contrast.high),
        verdict: verdict::of(contrast.as_ref(), figure.sense(), figure.scale()),
    }
}

impl Comparison {
    /// Whether any change is a change for the worse.
    pub fn has_worse(&self) -> bool {
        let figures = self.services.iter().flat_map(|service| &service.figures);
        let mut changes = figures.flat_map(|figure| &figure.changes);
        changes.any(|change| change.verdict == model::Verdict::Worse)
    }
}

#[cfg(test)]
mod tests;
