//! What closed connections leave behind.

use super::{connections_closed_after_n_turns, keep_alive_off};
use crate::finding::{Advice, Kind, Target};
use crate::subject::Subject;
use crate::{Evidence, Finding, Observed, Prediction, Severity};
use tlsprof_common::Role;
use tlsprof_common::units::{count, rate};

pub(crate) static KIND: Kind = Kind {
    label: "time-wait-build-up",
    page: include_str!("../../../../docs/findings/time-wait-build-up.md"),
    summary: "Many sockets are in TIME_WAIT",
    risk: "Never avoid TIME_WAIT by resetting connections (SO_LINGER 0). Delayed segments could \
           reach another connection.",
    rules: &[(Role::Server, find)],
    remedy,
    calibration: None,
};

/// So many standing TIME_WAIT sockets are worth a word: each takes some 300 bytes, so
/// that fewer are nobody's worry.
const STANDING: u64 = 10_000;

/// TIME_WAIT sockets of connections that the service was asked for.
fn find(subject: &Subject<'_>) -> Option<Finding> {
    let account = subject.connections(Role::Server)?;
    let standing = account.time_wait_standing(subject.now);
    let created = account.time_wait_created;
    if standing < STANDING || !subject.enough(created) {
        return None;
    }
    let per_second = rate(created, subject.setting.elapsed.as_secs_f64());
    let asked = subject.setting.client_closes;
    let asked = asked.map(|asked| format!("The client requested the close: {asked}."));
    let severity = asked.as_ref().map_or(Severity::Low, |_| Severity::Info);
    let mut statements: Vec<String> = asked.into_iter().collect();
    statements.push(format!(
        "{} sockets are in TIME_WAIT; {} were created ({per_second}), because the service closes \
         first.",
        count(standing),
        count(created),
    ));
    let evidence = Evidence {
        basis: subject.basis(Observed::Connections, account.closed_count()),
        statements,
        figures: vec![
            ("time_wait_standing", standing as f64),
            ("time_wait_created", created as f64),
        ],
    };
    let title = "Closed connections pile up in TIME_WAIT".to_owned();
    let kind = (&KIND, Role::Server);
    let finding = subject.finding(kind, severity, title, evidence, Prediction::Nothing);
    Some(finding)
}

fn remedy(target: Target) -> Advice {
    let (_, directive) = keep_alive_off::remedy(target);
    let (_, limit) = connections_closed_after_n_turns::remedy(target);
    (
        "Let connections carry more requests, so that fewer are closed. TIME_WAIT itself is normal: \
         the side that closes first keeps it for a minute.",
        if directive.is_empty() {
            limit
        } else {
            directive
        },
    )
}
