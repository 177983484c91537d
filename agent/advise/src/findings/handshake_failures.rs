//! Handshakes that fail.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::finding::{Advice, Kind, Target};
use crate::subject::Subject;
use crate::{Evidence, Finding, Observed, Prediction, Server, Severity};
use tlsprof_common::units::{count, percent, times};
use tlsprof_common::{Outcome, Reason, Role};
use tlsprof_ledger::{Counts, TurnedAway};
use tlsprof_library::reason_name;

pub(crate) static KIND: Kind = Kind {
    label: "handshake-failures",
    page: include_str!("../../../../docs/findings/handshake-failures.md"),
    summary: "Handshakes fail",
    risk: "Accepting old clients may weaken security for all clients: find out who they are first.",
    rules: &[(Role::Server, find)],
    remedy,
    calibration: None,
};

/// Share of the handshakes that must fail, and how many at least: on the Internet
/// something always knocks with rubbish.
const SHARE: f64 = 0.01;

const AT_LEAST: u64 = 10;

/// From this share on, many clients are turned away.
const MANY: f64 = 0.1;

/// Share of the failures from which a cause is the cause: most that fail otherwise say no alert in clear.
const MOST: f64 = 0.5;

/// Causes that are told.
const CAUSES: usize = 3;

/// Names that are told of a list.
const NAMES: usize = 3;

fn find(subject: &Subject<'_>) -> Option<Finding> {
    let server = subject.handshakes(|key| key.role == Role::Server);
    let failed =
        subject.handshakes(|key| key.role == Role::Server && key.outcome == Outcome::Failed);
    let share = failed.count as f64 / server.count.max(1) as f64;
    if !subject.enough(server.count) || failed.count < AT_LEAST || share < SHARE {
        return None;
    }
    let mut statements = vec![format!(
        "{} of {} handshakes failed ({}).",
        count(failed.count),
        count(server.count),
        percent(share)
    )];
    let causes = by_alert(subject);
    let sentences = causes
        .iter()
        .take(CAUSES)
        .map(|cause| cause.sentence.clone());
    statements.extend(sentences);
    if let Some(text) = by_reason(subject) {
        statements.push(text);
    }
    let title = match causes.first() {
        Some(first) if first.clients as f64 >= MOST * failed.count as f64 => {
            format!("Handshakes fail: {}", first.in_short)
        }
        _ => "Handshakes fail".to_owned(),
    };
    let evidence = Evidence {
        basis: subject.basis(Observed::Handshakes, server.count),
        statements,
        figures: vec![
            ("failed_handshakes", failed.count as f64),
            ("handshakes", server.count as f64),
            ("failed_ratio", share),
        ],
    };
    let severity = if share < MANY {
        Severity::Medium
    } else {
        Severity::High
    };
    let kind = (&KIND, Role::Server);
    Some(subject.finding(kind, severity, title, evidence, Prediction::Nothing))
}

/// An alert that ended handshakes.
struct Cause {
    clients: u64,
    in_short: String,
    /// With what these clients offered.
    sentence: String,
}

/// Most frequent first.
fn by_alert(subject: &Subject<'_>) -> Vec<Cause> {
    let Some(role) = subject.role(Role::Server) else {
        return Vec::new();
    };
    let consequences = &role.hellos.consequences;
    let mut alerts: Vec<_> = consequences.turned_away.iter().collect();
    alerts.sort_by_key(|(_, away)| Reverse(away.hellos));
    let told = alerts.into_iter().map(|((sent, alert), away)| {
        let who = if *sent { "the server" } else { "clients" };
        let alert_in_words = alert.replace('_', " ");
        let in_short = meaning(*sent, alert).map_or_else(
            || format!("{who} sent the alert {alert_in_words}"),
            str::to_owned,
        );
        let sentence = format!(
            "{} sent the alert {alert_in_words} {}: {}.",
            if *sent { "The server" } else { "Clients" },
            times(away.hellos),
            offers(alert, away)
        );
        Cause {
            clients: away.hellos,
            in_short,
            sentence,
        }
    });
    told.collect()
}

/// What an alert means, seen from the server.
fn meaning(sent: bool, alert: &str) -> Option<&'static str> {
    Some(match (sent, alert) {
        (true, "handshake_failure") => "no cipher suite, group or signature in common",
        (true, "protocol_version") => "no TLS version in common",
        (true, "insufficient_security") => "the server rejects the clients' parameters as too weak",
        (true, "unrecognized_name") => "clients request an unknown host name",
        (true, "no_application_protocol") => "no application protocol in common",
        (true, "unknown_ca") => "the issuer of client certificates is unknown",
        (true, "certificate_expired") => "client certificates have expired",
        (false, "unknown_ca") => "clients do not trust the issuer of the server's certificate",
        (false, "certificate_expired") => "the server's certificate has expired",
        (false, "bad_certificate" | "certificate_unknown") => {
            "clients reject the server's certificate"
        }
        (false, "protocol_version") => "clients reject the TLS version that the server chose",
        _ => return None,
    })
}

/// What clients offered, as far as it may explain the alert.
fn offers(alert: &str, away: &TurnedAway) -> String {
    let newest = list(&away.newest_versions);
    match alert {
        "handshake_failure" | "insufficient_security" => format!(
            "up to {newest}; suites {}; groups {}",
            list(&away.ciphers),
            list(&away.groups)
        ),
        _ => format!("these clients offered up to {newest}"),
    }
}

/// The most frequent names.
fn list(counts: &Counts) -> String {
    let mut names: Vec<_> = counts.iter().collect();
    names.sort_by_key(|(_, number)| Reverse(**number));
    let more = names.len().saturating_sub(NAMES);
    let shown: Vec<&str> = names.iter().take(NAMES).map(|(name, _)| **name).collect();
    match (shown.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (_, 0) => shown.join(", "),
        _ => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The most frequent reason that the library gave.
fn by_reason(subject: &Subject<'_>) -> Option<String> {
    let mut all: BTreeMap<Reason, u64> = BTreeMap::new();
    for (key, sum) in &subject.account.handshakes {
        if key.role == Role::Server {
            for (reason, number) in &sum.errors {
                *all.entry(*reason).or_default() += number;
            }
        }
    }
    let (reason, number) = all.into_iter().max_by_key(|(_, number)| *number)?;
    Some(format!(
        "Most frequent reason given by the library: {} ({}).",
        reason_name(reason),
        times(number)
    ))
}

fn remedy(target: Target) -> Advice {
    match target.server {
        Server::Nginx => (
            "First decide whether these clients matter. If they do: enable what they offer, or send \
             the complete certificate chain.",
            "ssl_protocols TLSv1.2 TLSv1.3;\nssl_certificate /etc/nginx/site-fullchain.pem;",
        ),
        Server::Apache => (
            "First decide whether these clients matter. If they do: enable what they offer, or send \
             the complete certificate chain.",
            "SSLProtocol -all +TLSv1.2 +TLSv1.3\n\
             SSLCertificateFile /etc/apache2/site-fullchain.pem",
        ),
        _ => (
            "First decide whether these clients matter. If they do: enable a version, suite or \
             group that they offer; for alerts about the certificate, send the complete chain and \
             renew it in time.",
            "",
        ),
    }
}
