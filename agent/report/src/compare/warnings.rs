//! What makes a comparison doubtful.

use std::collections::BTreeSet;

use super::LabelledRuns;
use super::reading::Reading;
use crate::model::{Report, Service};
use tlsprof_common::units::time;

/// Shorter profiles are mostly beginning and end.
const SHORT_SECONDS: f64 = 5.0;

/// What differs between reports beside what is compared.
pub fn of(groups: &[LabelledRuns]) -> Vec<String> {
    let reports = || {
        groups
            .iter()
            .flat_map(|group| &group.runs)
            .map(|run| &run.report)
    };
    let differ = |what: &str, of: &dyn Fn(&Report) -> String, so: &str| {
        let values: BTreeSet<String> = reports().map(of).collect();
        (values.len() > 1).then(|| {
            let values: Vec<String> = values.into_iter().collect();
            format!(
                "The reports are of different {what} ({}): {so}.",
                values.join(", ")
            )
        })
    };
    let host = |report: &Report| report.host.hostname.clone();
    let cpus = |report: &Report| report.host.cpus.to_string();
    let kernel = |report: &Report| report.host.kernel.clone();
    let version = |report: &Report| report.tlsprof_version.clone();
    let period = |report: &Report| {
        let period = report.sampling.period_seconds;
        period.map_or_else(
            || "none".to_owned(),
            |period| format!("one each {}", time(period)),
        )
    };
    let mut all: Vec<String> = [
        differ("hosts", &host, "a difference may be the machine's"),
        differ(
            "numbers of CPUs",
            &cpus,
            "a difference may be the machine's",
        ),
        differ("kernels", &kernel, "a difference may be the kernel's"),
        differ(
            "versions of tlsprof",
            &version,
            "they may count differently",
        ),
        differ(
            "rates of CPU samples",
            &period,
            "their activities are not equally sure",
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    all.extend(short(groups));
    for run in groups.iter().flat_map(|group| &group.runs) {
        if let Some(status) = run.report.command.as_ref().map(|one| one.exit_status)
            && status != 0
        {
            all.push(format!(
                "The command of {} ended with status {status}.",
                run.file
            ));
        }
    }
    all
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
            "Less than {} were profiled for {}: what happens at the beginning and the end of a \
             load weighs much.",
            time(SHORT_SECONDS),
            short.join(", ")
        )
    })
}

/// What is not known of a service, and what differs.
pub fn of_service(found: &[Vec<(&Report, &Service)>], labels: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    for (runs, label) in found.iter().zip(labels) {
        let reasons: BTreeSet<&str> = runs
            .iter()
            .filter_map(|(_, service)| Reading::new(service, 0.0).why_no_requests())
            .collect();
        for reason in reasons {
            all.push(format!(
                "{label}: figures by request are not known: {reason}."
            ));
        }
    }
    let services = || found.iter().flatten().map(|(_, service)| service);
    let sources: BTreeSet<&str> = services().map(|one| one.source.label()).collect();
    if sources.len() > 1 {
        let sources: Vec<&str> = sources.into_iter().collect();
        all.push(format!(
            "Its handshakes were seen by different means ({}): their CPU time may differ by a few percent for that.",
            sources.join(", ")
        ));
    }
    all
}
