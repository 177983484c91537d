//! Comparisons as they may come from real reports, for tests of the outlets.

use crate::compare::model::Comparison;
use crate::compare::{LabelledRun, LabelledRuns, compare};
use crate::model::Report;
use crate::sample;

/// The sample report of a host whose nginx takes `cost` times the CPU for the same work.
pub fn scaled(cost: f64) -> Report {
    let mut report = sample::report();
    let services = report.services.iter_mut();
    for service in services.filter(|one| one.service_name == "nginx.service") {
        service.cpu_seconds.user *= cost;
        service.cpu_seconds.system *= cost;
        for activity in &mut service.activities {
            activity.cpu_seconds *= cost;
        }
        for unit in &mut service.unit_costs {
            unit.cpu_seconds *= cost;
        }
        for handshakes in &mut service.handshakes {
            handshakes.cpu_seconds *= cost;
        }
        for one in &mut service.handshake_costs {
            one.cpu.mean *= cost;
        }
    }
    report
}

/// The same after nobody gets P-384 any more.
pub(crate) fn faster(cost: f64) -> Report {
    let mut report = scaled(cost);
    report.findings.retain(|one| one.id != "slow-key-exchange");
    for service in &mut report.services {
        for handshakes in &mut service.handshakes {
            if handshakes.group == "secp384r1" {
                handshakes.group = "x25519".to_owned();
            }
        }
    }
    report
}

/// Reports under one label.
pub fn group(label: &str, reports: Vec<Report>) -> LabelledRuns {
    let run = |(at, report)| LabelledRun {
        file: format!("{label}-{at}.json"),
        report,
    };
    LabelledRuns {
        label: label.to_owned(),
        runs: reports.into_iter().enumerate().map(run).collect(),
    }
}

/// One report before and one after.
pub fn two() -> Comparison {
    let groups = [
        group("before", vec![scaled(1.0)]),
        group("after", vec![faster(0.5)]),
    ];
    compare(&groups, &[], 0.05)
}

/// Three of each, with a smaller difference.
pub fn repeats() -> Comparison {
    let before = [1.0, 1.03, 0.98].map(scaled).into();
    let after = [0.75, 0.77, 0.74].map(scaled).into();
    compare(&[group("before", before), group("after", after)], &[], 0.05)
}

/// Five configurations.
pub fn matrix() -> Comparison {
    let costs = [
        ("cbc-sha256", 1.0),
        ("gcm", 0.55),
        ("ccm", 0.57),
        ("chacha20", 0.58),
        ("3des", 2.3),
    ];
    let groups = costs.map(|(label, cost)| group(label, vec![scaled(cost)]));
    compare(&groups, &[], 0.05)
}
