//! Comparison of reports: what changed, and whether it is real.
//!
//! Pure: reports in, a [`Comparison`] out. It stands beside the way of the data, since its
//! evidence are reports that were written before. The statistics are in [`statistics`], in
//! words in `docs/compare.md`.

pub mod figure;
pub mod input;
mod matching;
mod measured;
mod mixes;
pub mod model;
mod reading;
mod runs;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub(crate) mod statistics;
mod verdict;
mod warnings;

use measured::Measured;
use model::{Comparison, Group, LeftOut, Method, Run, SCHEMA_VERSION};
pub use runs::{LabelledRun, LabelledRuns, Pair};
use statistics::{CONFIDENCE, Noise};

/// What the assumed spread is worth against observed repeats, in degrees of freedom. So
/// many were the runs, less one, from which the default was measured: `docs/compare.md`.
const ASSUMED_WEIGHT: f64 = 10.0;

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
                reason,
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
