//! Sessions that clients bring, and that the server refuses.

mod cause;
mod origins;
mod remedy;

#[cfg(test)]
pub(super) use cause::Cause;
pub(super) use remedy::{off, since};

use crate::finding::Kind;
use crate::resumed::{all_full, attempts, predict};
use crate::subject::{Subject, Tally};
use crate::{Evidence, Finding, Observed, Remedy, Severity};
use tlsprof_common::Role;
use tlsprof_common::units::{count, percent, time};
use tlsprof_evidence::hello::Attempt;

pub(crate) static KIND: Kind = Kind {
    label: "resumption-refused",
    page: include_str!("../../../../../docs/findings/resumption-refused.md"),
    summary: "Clients offer sessions, but the server refuses them",
    risk: "Anyone who obtains a ticket key can decrypt the TLS 1.2 sessions that it protects. \
           Rotate keys daily and keep them out of backups. A cached session needs about 1 KB of \
           memory.",
    rules: &[(Role::Server, find)],
    remedy: |target| remedy::refused(target.server),
    calibration: None,
};

/// Sessions that clients brought, and that the server did not take up.
fn find(subject: &Subject<'_>) -> Option<Finding> {
    let role = subject.role(Role::Server)?;
    let by_means: Vec<(&str, u64)> = attempts(role, Attempt::Refused).collect();
    let refused: u64 = by_means.iter().map(|(_, number)| number).sum();
    if !subject.enough(refused) {
        return None;
    }
    let of = |wanted| -> u64 {
        let those = by_means.iter().filter(|(means, _)| *means == wanted);
        those.map(|(_, number)| number).sum()
    };
    let full = all_full(subject, Role::Server);
    let numbers = [of("psk"), refused - of("psk")];
    let bound = full.each() * refused as f64;
    let prediction = predict(subject, Role::Server, numbers, bound)?;
    let accepted: u64 = attempts(role, Attempt::Accepted)
        .map(|(_, number)| number)
        .sum();
    let origins = &role.hellos.origins;
    let by_id = of("session_id");
    let cause = origins::cause(origins, refused, by_id < refused - by_id);
    let mut statements = statements(&by_means, refused + accepted, full);
    statements.extend(origins::statements(origins, refused, cause));
    let mut figures = vec![
        ("refused_handshakes", refused as f64),
        ("accepted_handshakes", accepted as f64),
        ("full_handshake_seconds", full.each()),
    ];
    figures.extend(origins::figures(origins));
    let evidence = Evidence {
        basis: subject.basis(Observed::Handshakes, refused + accepted),
        statements,
        figures,
    };
    let mut title = "Clients offer sessions for resumption, but the server refuses them".to_owned();
    if let Some(cause) = cause {
        title.push_str(": ");
        title.push_str(cause.label());
    }
    let kind = (&KIND, Role::Server);
    let mut finding = subject.finding(kind, Severity::Medium, title, evidence, prediction);
    if let Some(cause) = cause {
        finding.remedy = Remedy::new(subject.server, since(cause, subject.server));
    }
    Some(finding)
}

fn statements(by_means: &[(&str, u64)], offered: u64, full: Tally) -> Vec<String> {
    let refused: u64 = by_means.iter().map(|(_, number)| number).sum();
    let means: Vec<String> = by_means
        .iter()
        .map(|(means, number)| format!("{} by {}", count(*number), means_in_words(means)))
        .collect();
    vec![
        format!(
            "{} clients offered a session; {} ({}) were refused: {}.",
            count(offered),
            count(refused),
            percent(refused as f64 / offered as f64),
            means.join(", ")
        ),
        format!(
            "Each needed a full handshake, {} of CPU.",
            time(full.each())
        ),
    ]
}

fn means_in_words(means: &str) -> &str {
    match means {
        "session_id" => "session ID",
        "psk" => "TLS 1.3 ticket",
        "ticket" => "TLS 1.2 ticket",
        other => other,
    }
}
