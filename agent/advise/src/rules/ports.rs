//! What closed connections leave behind.

use crate::subject::Subject;
use crate::{Evidence, Finding, Id, Observed, Prediction, Severity};
use tlsprof_common::Role;
use tlsprof_common::units::{count, percent, rate};

/// So many standing TIME_WAIT sockets are worth a word: each takes some 300 bytes, so
/// that fewer are nobody's worry.
const STANDING: u64 = 10_000;
/// Share of the ephemeral ports toward one endpoint from which they may run out.
const PORTS: f64 = 0.5;
/// From here on a burst is enough.
const SCARCE: f64 = 0.8;

/// TIME_WAIT sockets of connections that the service was asked for.
pub(super) fn time_wait(subject: &Subject<'_>) -> Option<Finding> {
    let account = subject.connections(Role::Server)?;
    let standing = account.time_wait_standing(subject.now);
    let created = account.time_wait_created;
    if standing < STANDING || !subject.enough(created) {
        return None;
    }
    let per_second = rate(created, subject.setting.elapsed.as_secs_f64());
    let asked = subject.setting.client_closes;
    let asked = asked.map(|asked| format!("The client asked for the close: {asked}."));
    let severity = asked.as_ref().map_or(Severity::Low, |_| Severity::Info);
    let mut statements: Vec<String> = asked.into_iter().collect();
    statements.push(format!(
        "{} sockets stand in TIME_WAIT; {} were created ({per_second}), because the service \
             closes first.",
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
    let kind = (Id::TimeWaitBuildUp, Role::Server);
    let finding = subject.finding(kind, severity, title, evidence, Prediction::Nothing);
    Some(finding)
}

/// Ephemeral ports toward one endpoint.
pub(super) fn ephemeral(subject: &Subject<'_>) -> Option<Finding> {
    let ports = subject.account.ephemeral_ports(subject.now)?;
    let share = ports.ratio();
    if share < PORTS || !subject.enough(ports.used) {
        return None;
    }
    let severity = if share < SCARCE {
        Severity::Medium
    } else {
        Severity::High
    };
    let evidence = Evidence {
        basis: subject.basis(Observed::Connections, ports.used),
        statements: vec![format!(
            "Toward its busiest remote endpoint the service takes up {} of {} ephemeral ports \
             ({}), those in TIME_WAIT included. When there is none left, connecting fails.",
            count(ports.used),
            count(ports.available.into()),
            percent(share)
        )],
        figures: vec![
            ("ports_used", ports.used as f64),
            ("ports_available", f64::from(ports.available)),
        ],
    };
    let title = "Ports for connections to another server are running out".to_owned();
    let kind = (Id::EphemeralPorts, Role::Client);
    Some(subject.finding(kind, severity, title, evidence, Prediction::Nothing))
}
