//! Hellos, alerts and sources of a service, from its account.

use std::cmp::Reverse;

use tlsprof_common::{Role, Source};
use tlsprof_ledger::{Counts, HelloAccount, RoleAccount, ServiceAccount};

use super::model::{
    self, Agreement, AlertCount, ApplicationBytes, AttemptCount, EstimatedHandshakes, Hellos,
    NameCount, SocketHandshakes,
};

pub(super) fn hellos(role: Role, account: &RoleAccount) -> Vec<Hellos> {
    let kept = &account.hellos;
    if kept.hellos == 0 {
        return Vec::new();
    }
    vec![Hellos {
        role: role.label().into(),
        count: kept.hellos,
        attempts: attempts(kept),
        offered_versions: counts(&kept.offered_versions()),
        offered_groups: counts(&kept.offered_groups()),
        features: counts(&kept.features),
        application_protocols: counts(&kept.protocols),
        upgrades: counts(&kept.upgrades),
    }]
}

fn attempts(account: &HelloAccount) -> Vec<AttemptCount> {
    let attempts = account.attempts.iter();
    let mut attempts: Vec<_> = attempts
        .map(|((attempt, means), count)| AttemptCount {
            attempt: attempt.label().into(),
            means: (*means).into(),
            count: *count,
        })
        .collect();
    attempts.sort_by_key(|one| Reverse(one.count));
    attempts
}

fn counts(counts: &Counts) -> Vec<NameCount> {
    let mut counts: Vec<_> = counts
        .iter()
        .map(|(name, count)| NameCount {
            name: (*name).to_owned(),
            count: *count,
        })
        .collect();
    counts.sort_by_key(|one| Reverse(one.count));
    counts
}

pub(super) fn alerts(role: Role, account: &RoleAccount) -> Vec<AlertCount> {
    let alerts = account.hellos.alerts.iter();
    let mut alerts: Vec<_> = alerts
        .map(|((sent, description), count)| AlertCount {
            role: role.label().into(),
            direction: if *sent { "sent" } else { "received" }.to_owned(),
            description: (*description).to_owned(),
            count: *count,
        })
        .collect();
    alerts.sort_by_key(|one| Reverse(one.count));
    alerts
}

pub(super) fn application(role: Role, account: &RoleAccount) -> Vec<ApplicationBytes> {
    let mut all: Vec<ApplicationBytes> = account
        .application
        .iter()
        .map(|(cipher, bytes)| ApplicationBytes {
            role: role.label().into(),
            cipher: (*cipher).to_owned(),
            received: bytes.received,
            sent: bytes.sent,
        })
        .collect();
    all.sort_by_key(|one| Reverse(one.received + one.sent));
    all
}

pub(super) fn socket_handshakes(role: Role, account: &RoleAccount) -> Vec<SocketHandshakes> {
    let kept = &account.socket;
    if kept.handshakes == 0 {
        return Vec::new();
    }
    vec![SocketHandshakes {
        role: role.label().into(),
        count: kept.handshakes,
        cpu_seconds: kept.cpu.as_secs_f64(),
        first_flight_seconds: kept.first_flight.as_secs_f64(),
        last_flight_seconds: kept.last_flight.as_secs_f64(),
        offloaded: kept.offloaded,
    }]
}

pub(super) fn estimated(role: Role, account: &RoleAccount) -> Vec<EstimatedHandshakes> {
    let kept = &account.estimated;
    if kept.handshakes == 0 {
        return Vec::new();
    }
    vec![EstimatedHandshakes {
        role: role.label().into(),
        count: kept.handshakes,
        count_margin: kept.count_margin(),
        cpu_margin_seconds: kept.cpu_margin(),
    }]
}

pub(super) fn agreement(role: Role, account: &RoleAccount) -> Vec<Agreement> {
    let kept = &account.agreement;
    if kept.handshakes == 0 {
        return Vec::new();
    }
    vec![Agreement {
        role: role.label().into(),
        handshakes: kept.handshakes,
        library_cpu_seconds: kept.library.as_secs_f64(),
        socket_cpu_seconds: kept.socket.as_secs_f64(),
    }]
}

/// Where the handshake figures of a service come from.
pub(super) fn source(account: &ServiceAccount, profiled: bool) -> model::Source {
    let library = account.count_by(Source::Library) > 0;
    let socket = account.count_by(Source::Socket) > 0;
    match (library, socket) {
        (true, true) => model::Source::Both,
        (false, true) => model::Source::SocketCalls,
        (true, false) => model::Source::LibraryProbes,
        (false, false) if profiled => model::Source::LibraryProbes,
        (false, false) => model::Source::None,
    }
}
