//! Figures of one service in all groups of reports, and what is made of them.

use super::figure::Figure;
use super::matching::Matched;
use super::model::{
    Change, FigureComparison, FigureLevel, Method, Ranking, Sense, ServiceComparison, Verdict,
};
use super::reading::{MAY_CARRY_SEVERAL, Reading};
use super::runs::{LabelledRun, LabelledRuns};
use super::statistics::{CONFIDENCE, Contrast, Estimate, Level, Noise, Spread};
use super::{mixes, verdict, warnings};
use crate::model::{Report, Role, Service};

/// A service's figures in all groups, before anything is judged: how many there are decides
/// how sure each must be.
pub(super) struct Measured<'a> {
    matched: Matched,
    /// The service in the runs of each group, with the run.
    found: Vec<Vec<(&'a Report, &'a Service)>>,
    figures: Vec<(Figure, Vec<Option<Level>>)>,
}

impl<'a> Measured<'a> {
    /// The figures of a service that was matched.
    pub fn of(groups: &'a [LabelledRuns], matched: Matched, noise: Noise) -> Self {
        let found: Vec<Vec<_>> = groups
            .iter()
            .zip(&matched.names)
            .map(|(group, name)| services(group, name.as_deref()))
            .collect();
        let figures = Figure::ALL
            .into_iter()
            .map(|figure| (figure, levels(&found, figure, noise)))
            .filter(|(figure, levels)| {
                // The one that readers look for says why it is missing.
                let told = *figure == Figure::CpuPerRequest && is_multiplexed(&found);
                told || levels.iter().any(Option::is_some)
            })
            .collect();
        Self {
            matched,
            found,
            figures,
        }
    }

    /// Changes from the first group that can be judged.
    pub fn changes(&self) -> u32 {
        let judged = |(_, levels): &(Figure, Vec<Option<Level>>)| match levels.split_first() {
            Some((Some(_), others)) => others.iter().flatten().count(),
            _ => 0,
        };
        let figures = self.figures.iter();
        let figures = figures.filter(|(figure, _)| figure.sense() != Sense::Load);
        let number: usize = figures.map(judged).sum();
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// What changed, judged.
    pub(crate) fn comparison(&self, labels: &[&str], method: Method) -> ServiceComparison {
        let first = self.found.iter().flatten().next();
        let names = &self.matched.names;
        ServiceComparison {
            service_name: names.iter().flatten().next().cloned().unwrap_or_default(),
            names: names.clone(),
            matched_by: self.matched.by,
            role: first.map_or(Role::Server, |(_, one)| Reading::new(one, 0.0).role()),
            figures: self
                .figures
                .iter()
                .map(|(figure, levels)| {
                    let mut compared = figure_comparison(*figure, levels, labels, method);
                    if figure.is_by_request() && is_multiplexed(&self.found) {
                        not_judged(&mut compared);
                    }
                    compared
                })
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

/// Whether in one of the runs a turn may carry several requests, which nobody counted.
fn is_multiplexed(found: &[Vec<(&Report, &Service)>]) -> bool {
    let mut services = found.iter().flatten();
    services.any(|(_, service)| Reading::new(service, 0.0).is_multiplexed())
}

/// Gives no verdict for want of requests, and says so.
fn not_judged(figure: &mut FigureComparison) {
    figure.caveat = MAY_CARRY_SEVERAL.to_owned();
    for change in &mut figure.changes {
        change.verdict = Verdict::NotJudged;
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
        unit: figure.unit(),
        sense: figure.sense(),
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
