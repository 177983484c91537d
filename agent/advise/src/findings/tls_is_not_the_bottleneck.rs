//! The honest finding.

use crate::finding::{Advice, Kind, Target};
use crate::subject::Subject;
use crate::{Evidence, Finding, Observed, Prediction, Severity};
use tlsprof_common::Role;
use tlsprof_common::units::{count, percent, time};
use tlsprof_ledger::is_lower_bound;

pub(crate) static KIND: Kind = Kind {
    label: "tls-is-not-the-bottleneck",
    page: include_str!("../../../../docs/findings/tls-is-not-the-bottleneck.md"),
    summary: "Not a problem: TLS handshakes use little CPU",
    risk: "None.",
    rules: &[(Role::Server, find)],
    remedy,
    calibration: None,
};

/// Less CPU time than this, in seconds, is no load to judge by.
const LOAD: f64 = 1.0;

/// TLS handshakes take less than any change to them could be worth.
fn find(subject: &Subject<'_>) -> Option<Finding> {
    let completed = subject.completed(Role::Server);
    let connections = subject
        .connections(Role::Server)
        .map_or(0, |account| account.opened);
    let cpu = subject.cpu();
    let seconds = subject.account.handshake_cpu().as_secs_f64();
    let offloaded = is_lower_bound(completed.offloaded, completed.count);
    let enough = subject.enough(completed.count.max(connections)) && cpu >= LOAD;
    if completed.count == 0 || offloaded || !enough || subject.worth(seconds) {
        return None;
    }
    let share = seconds / cpu;
    let evidence = Evidence {
        basis: subject.basis(Observed::Handshakes, completed.count),
        statements: vec![format!(
            "{} handshakes used {} of {} of CPU ({}). No change to certificate, key exchange or \
             resumption can save more. Encryption of data is not included.",
            count(completed.count),
            time(seconds),
            time(cpu),
            percent(share)
        )],
        figures: vec![
            ("handshakes", completed.count as f64),
            ("handshake_cpu_seconds", seconds),
            ("handshake_cpu_ratio", share),
        ],
    };
    let title = format!(
        "TLS handshakes are not the bottleneck: {} of the CPU",
        percent(share)
    );
    let kind = (&KIND, Role::Server);
    Some(subject.finding(kind, Severity::Info, title, evidence, Prediction::Nothing))
}

fn remedy(_: Target) -> Advice {
    (
        "Leave TLS as it is. Look at the application, the encryption of data and socket calls; \
         `perf top` on the service shows where its CPU goes.",
        "",
    )
}
