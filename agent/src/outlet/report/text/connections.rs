//! The TCP connections of one service: who closes them, after how many turns,
//! and what they leave in TIME_WAIT.

use crate::outlet::report::model::{ClosedConnections, Connections, Service, TurnCount};
use crate::outlet::terminal::table::{Align, Table};
use crate::outlet::terminal::units::{bytes, count, counted, percent, rate, time};
use crate::outlet::terminal::{Paint, Style, wrap};

use super::paint_lines;
use super::service::section;

/// A sentence on turns needs at least this share of the connections to agree.
const PEAK: f64 = 0.5;
/// Less than this share of the ephemeral ports is nobody's worry.
const WORTH_A_SENTENCE: f64 = 0.05;

pub(super) fn connections(service: &Service, seconds: f64, style: Style) -> String {
    if service.connection_count() == 0 {
        return String::new();
    }
    let mut out = section("TCP connections", style);
    if !service.connections.is_empty() {
        out.push_str(&table(service, seconds).render(style, 4));
    }
    for connections in &service.connections {
        let sentences = [peak(connections), time_wait(connections, seconds)];
        for sentence in sentences.into_iter().flatten() {
            out.push_str(&wrap(&sentence, 4, style.width));
        }
    }
    if let Some(sentence) = ephemeral_ports(service) {
        out.push_str(&wrap(&sentence, 4, style.width));
    }
    for note in notes(service) {
        let lines = wrap(&note, 4, style.width);
        out.push_str(&paint_lines(style, Paint::Dim, &lines));
    }
    out
}

/// What a reader must know to judge the figures.
pub(in crate::outlet::report) fn notes(service: &Service) -> Vec<String> {
    let mut notes = Vec::new();
    if service.connections_from_before > 0 {
        let number = counted(
            service.connections_from_before,
            "connection that ended had",
            "connections that ended had",
        );
        notes.push(format!(
            "{number} been open before the profile began; they are not in this."
        ));
    }
    notes
}

fn table(service: &Service, seconds: f64) -> Table {
    let mut table = Table::new()
        .left("role")
        .right("opened")
        .optional("per second", Align::Right)
        .right("closed")
        .right("by service")
        .right("by peer")
        .right("reset")
        .right("turns")
        .right("p50 time")
        .optional("p99", Align::Right)
        .optional("received", Align::Right)
        .optional("sent", Align::Right);
    for one in &service.connections {
        let by = |closer: &str| -> u64 {
            let those = one
                .closed
                .iter()
                .filter(|closed| closed.closed_by == closer);
            those.map(|closed| closed.count).sum()
        };
        table.row([
            one.role.clone(),
            count(one.opened),
            rate(one.opened, seconds),
            count(one.closed_count()),
            count(by("local")),
            count(by("remote")),
            count(one.closed.iter().map(|closed| closed.reset).sum()),
            median(one),
            time(one.duration.p50),
            time(one.duration.p99),
            bytes(one.bytes_received),
            bytes(one.bytes_sent),
        ]);
    }
    table
}

/// Median of the turns of all connections that ended.
fn median(connections: &Connections) -> String {
    let closed = connections.closed.iter();
    let mut turns: Vec<TurnCount> = closed.flat_map(|one| one.turns.iter().copied()).collect();
    turns.sort_by_key(|turns| turns.from);
    let total: u64 = turns.iter().map(|turns| turns.connections).sum();
    let mut seen = 0;
    let median = turns.iter().find(|turns| {
        seen += turns.connections;
        2 * seen >= total
    });
    median.map_or_else(|| "-".to_owned(), |turns| range(*turns))
}

/// The class of turns.
pub(in crate::outlet::report) fn range(turns: TurnCount) -> String {
    if turns.from == turns.to {
        count(turns.from.into())
    } else {
        format!("{} to {}", count(turns.from.into()), count(turns.to.into()))
    }
}

/// What most connections have in common.
pub(in crate::outlet::report) fn peak(connections: &Connections) -> Option<String> {
    let (closed, turns) = connections.peak()?;
    let share = turns.connections as f64 / connections.closed_count() as f64;
    if share < PEAK {
        return None;
    }
    let exactly = if turns.from == turns.to {
        "exactly "
    } else {
        ""
    };
    let noun = if turns.to == 1 { "turn" } else { "turns" };
    Some(format!(
        "{} of {} connections were closed by {} after {exactly}{} {noun}.",
        percent(share),
        connections.role,
        closer(closed, &connections.role),
        range(turns),
    ))
}

/// The closer in words.
pub(in crate::outlet::report) fn closer(closed: &ClosedConnections, role: &str) -> &'static str {
    match (closed.closed_by.as_str(), role) {
        ("local", "server") | ("remote", "client") => "the server",
        ("local", "client") | ("remote", "server") => "the client",
        _ => "a timeout",
    }
}

/// What is left in TIME_WAIT.
pub(in crate::outlet::report) fn time_wait(
    connections: &Connections,
    seconds: f64,
) -> Option<String> {
    if connections.time_wait_created == 0 {
        return None;
    }
    Some(format!(
        "TIME_WAIT in the {} role: {} created ({}), {} standing at the end.",
        connections.role,
        count(connections.time_wait_created),
        rate(connections.time_wait_created, seconds),
        count(connections.time_wait_standing),
    ))
}

/// Worth a sentence where ports may run out.
pub(in crate::outlet::report) fn ephemeral_ports(service: &Service) -> Option<String> {
    let ports = service.ephemeral_ports?;
    let share = ports.used as f64 / f64::from(ports.available);
    (share >= WORTH_A_SENTENCE).then(|| {
        format!(
            "Toward its busiest remote endpoint the service takes up {} of {} ephemeral ports ({}), those in TIME_WAIT included.",
            count(ports.used),
            count(ports.available.into()),
            percent(share.min(1.0)),
        )
    })
}
