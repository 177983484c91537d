//! Ephemeral ports toward one endpoint run out.

use super::upstream_keep_alive_off;
use crate::finding::{Advice, Kind, Target};
use crate::subject::Subject;
use crate::{Evidence, Finding, Observed, Prediction, Severity};
use tlsprof_common::Role;
use tlsprof_common::units::{count, percent};

pub(crate) static KIND: Kind = Kind {
    label: "ephemeral-ports",
    page: include_str!("../../../../docs/findings/ephemeral-ports.md"),
    summary: "Ephemeral ports toward an upstream server are running out",
    risk: upstream_keep_alive_off::KIND.risk,
    rules: &[(Role::Client, find)],
    remedy,
    calibration: None,
};

/// Share of the ephemeral ports toward one endpoint from which they may run out.
const PORTS: f64 = 0.5;

/// From here on a burst is enough.
const SCARCE: f64 = 0.8;

/// Ephemeral ports toward one endpoint.
fn find(subject: &Subject<'_>) -> Option<Finding> {
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
            "Toward its busiest remote endpoint the service uses {} of {} ephemeral ports ({}), \
             including those in TIME_WAIT. Once none is left, connecting fails.",
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
    let kind = (&KIND, Role::Client);
    Some(subject.finding(kind, severity, title, evidence, Prediction::Nothing))
}

fn remedy(target: Target) -> Advice {
    let (_, directive) = upstream_keep_alive_off::remedy(target);
    (
        "Keep connections to the upstream server open, so that fewer ports are in TIME_WAIT. As a \
         stopgap: widen net.ipv4.ip_local_port_range, set net.ipv4.tcp_tw_reuse=1, or spread the \
         connections over several addresses.",
        directive,
    )
}
