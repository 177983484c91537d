//! What makes a comparison doubtful.

use std::collections::BTreeSet;

use super::reading::Reading;
use super::runs::LabelledRuns;
use crate::model::{Report, Service};
use tlsprof_common::units::time;

/// Shorter profiles are mostly beginning and end.
const SHORT_SECONDS: f64 = 5.0;

/// A property in which reports may differ: its name, its value, and what a difference means.
type Property = (&'static str, fn(&Report) -> String, &'static str);

const PROPERTIES: [Property; 5] = [
    (
        "hosts",
        |report| report.host.hostname.clone(),
        "the machine may cause a difference",
    ),
    (
        "numbers of CPUs",
        |report| report.host.cpus.to_string(),
        "the machine may cause a difference",
    ),
    (
        "kernels",
        |report| report.host.kernel.clone(),
        "the kernel may cause a difference",
    ),
    (
        "versions of tlsprof",
        |report| report.tlsprof_version.clone(),
        "versions may count differently",
    ),
    (
        "rates of CPU samples",
        |report| {
            let sampling = &report.sampling;
            match sampling.first_period_seconds.or(sampling.period_seconds) {
                Some(period) => format!("one each {}", time(period)),
                None => "none".to_owned(),
            }
        },
        "the precision of activities differs",
    ),
];

/// What differs between reports beside what is compared.
pub fn of(groups: &[LabelledRuns]) -> Vec<String> {
    let runs = || groups.iter().flat_map(|group| &group.runs);
    let differ = PROPERTIES.iter().filter_map(|(what, of, so)| {
        let values: BTreeSet<String> = runs().map(|run| of(&run.report)).collect();
        let list = || values.iter().cloned().collect::<Vec<_>>().join(", ");
        (values.len() > 1).then(|| format!("The reports have different {what} ({}): {so}.", list()))
    });
    let failed = runs().filter_map(|run| {
        let status = run.report.command.as_ref()?.exit_status;
        let file = &run.file;
        (status != 0).then(|| format!("The command of {file} ended with status {status}."))
    });
    differ.chain(short(groups)).chain(failed).collect()
}

/// Reports of hardly any time, in one sentence.
fn short(groups: &[LabelledRuns]) -> Option<String> {
    let runs = groups.iter().flat_map(|group| &group.runs);
    let short: Vec<String> = runs
        .map(|run| (&run.file, run.report.duration_seconds))
        .filter(|(_, seconds)| *seconds < SHORT_SECONDS)
        .map(|(file, seconds)| format!("{file} ({})", time(seconds)))
        .collect();
    (!short.is_empty()).then(|| {
        format!(
            "Profiles shorter than {}: {}. The start and end of the load weigh heavily.",
            time(SHORT_SECONDS),
            short.join(", ")
        )
    })
}

/// What is not known of a service, and what differs.
pub(crate) fn of_service(found: &[Vec<(&Report, &Service)>], labels: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    for (runs, label) in found.iter().zip(labels) {
        let reasons: BTreeSet<&str> = runs
            .iter()
            .filter_map(|(_, service)| Reading::new(service, 0.0).why_no_requests())
            .collect();
        for reason in reasons {
            all.push(format!(
                "{label}: figures per request are unknown: {reason}."
            ));
        }
    }
    let services = || found.iter().flatten().map(|(_, service)| service);
    let sources: BTreeSet<&str> = services().map(|one| one.source.label()).collect();
    if sources.len() > 1 {
        let sources: Vec<&str> = sources.into_iter().collect();
        all.push(format!(
            "Its handshakes come from different sources ({}): their CPU time may differ by a few \
             percent for that reason alone.",
            sources.join(", ")
        ));
    }
    all
}
