//! The TCP connections of one service: who closes them, after how many turns,
//! and what they leave in TIME_WAIT.

use std::collections::BTreeMap;

use crate::document::{Block, Cell, Shade, Table};
use tlsprof_common::units::{bytes, count, counted, percent, rate, time};
use tlsprof_report::model::{ClosedConnections, Closer, Connections, Role, Service, TurnCount};

use super::accept_queue::accept_queue;

/// A sentence on turns needs at least this share of the connections to agree.
const PEAK: f64 = 0.5;
/// Less than this share of the ephemeral ports is nobody's worry.
const WORTH_A_SENTENCE: f64 = 0.05;

/// Classes of turns that are drawn; the JSON has all.
const CLASSES: usize = 24;

/// What is known of a service's TCP connections; empty if it had none.
pub(crate) fn connections(service: &Service, seconds: f64) -> Vec<Block> {
    let mut blocks = Vec::new();
    blocks.extend(tcp(service, seconds));
    blocks.extend(accept_queue(service));
    blocks
}

fn tcp(service: &Service, seconds: f64) -> Option<Block> {
    if service.connection_count() == 0 {
        return None;
    }
    let mut blocks = Vec::new();
    if !service.connections.is_empty() {
        blocks.push(table(service, seconds).into());
    }
    for one in &service.connections {
        let sentences = [peak(one), time_wait(one, seconds)];
        blocks.extend(sentences.into_iter().flatten().map(Block::Text));
    }
    blocks.extend(ephemeral_ports(service).map(Block::Text));
    for one in &service.connections {
        let mut details = vec![closers(one).into()];
        details.extend(turns(one));
        blocks.push(Block::Fold(details, Vec::new()));
    }
    blocks.extend(Block::remarks(notes(service)));
    Some(Block::section("TCP connections", blocks))
}

/// What a reader must know to judge the figures.
fn notes(service: &Service) -> Vec<String> {
    let mut notes = Vec::new();
    if service.connections_from_before > 0 {
        let number = counted(
            service.connections_from_before,
            "connection that ended had",
            "connections that ended had",
        );
        notes.push(format!(
            "{number} been open before the profile began; they are not included."
        ));
    }
    notes
}

fn table(service: &Service, seconds: f64) -> Table {
    let mut table = Table::new("Connections by the role of the service")
        .words("role")
        .number("opened")
        .number("per second")
        .optional()
        .numbers(["closed", "by service", "by peer", "reset"])
        .number("turns")
        .titled("turns p50")
        .help("half of the connections carried at most this many requests")
        .number("p50 time")
        .help("half of the connections were open for at most this time")
        .number("p99")
        .titled("p99 time")
        .help("99 of 100 connections were open for at most this time")
        .optional()
        .number("received")
        .optional()
        .number("sent")
        .optional();
    for one in &service.connections {
        let by = |closer| -> u64 {
            let closed = one.closed.iter();
            let those = closed.filter(|closed| closed.closed_by == closer);
            those.map(|closed| closed.count).sum()
        };
        let cells = [
            one.role.label().to_owned(),
            count(one.opened),
            rate(one.opened, seconds),
            count(one.closed_count()),
            count(by(Closer::Local)),
            count(by(Closer::Remote)),
            count(one.closed.iter().map(|closed| closed.reset).sum()),
            median(one),
            time(one.duration.p50),
            time(one.duration.p99),
            bytes(one.bytes_received),
            bytes(one.bytes_sent),
        ];
        table.row(cells.map(Cell::from));
    }
    table
}

fn closers(one: &Connections) -> Table {
    let mut table = Table::new(format!("Who closes connections, {} role", one.role.label()))
        .words("closed by")
        .numbers(["connections", "share"])
        .bar("share, drawn")
        .number("reset");
    for closed in &one.closed {
        let share = closed.count as f64 / one.closed_count().max(1) as f64;
        table.row([
            closer(closed, one.role).into(),
            count(closed.count).into(),
            percent(share).into(),
            Cell::bar(share, Shade::TcpClose),
            count(closed.reset).into(),
        ]);
    }
    table
}

/// How many connections had how many turns, whoever closed them.
fn turns(one: &Connections) -> Vec<Block> {
    let mut classes: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for class in one.closed.iter().flat_map(|closed| &closed.turns) {
        let sum = classes.entry((class.from, class.to)).or_default();
        *sum = sum.saturating_add(class.connections);
    }
    let total: u64 = classes.values().sum();
    if total == 0 {
        return Vec::new();
    }
    let more = classes.len().saturating_sub(CLASSES);
    let (noun, title) = match one.turns_are_requests {
        Some(false) => ("turns", "Turns (may carry several requests)"),
        _ => ("requests", "Requests"),
    };
    let mut table = Table::new(format!(
        "{title} on each connection, {} role",
        one.role.label()
    ))
    .words(noun)
    .numbers(["connections", "share"])
    .bar("share, drawn");
    for ((from, to), connections) in classes.into_iter().take(CLASSES) {
        let share = connections as f64 / total as f64;
        let class = TurnCount {
            from,
            to,
            connections,
        };
        table.row([
            range(class).into(),
            count(connections).into(),
            percent(share).into(),
            Cell::bar(share, Shade::SocketIo),
        ]);
    }
    let note = (more > 0).then(|| format!("{more} more classes are in the JSON."));
    let blocks = [table.into()].into_iter();
    blocks.chain(Block::remarks(note)).collect()
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
fn range(turns: TurnCount) -> String {
    if turns.from == turns.to {
        count(turns.from.into())
    } else {
        format!("{} to {}", count(turns.from.into()), count(turns.to.into()))
    }
}

/// What most connections have in common.
fn peak(connections: &Connections) -> Option<String> {
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
    let noun = match (connections.turns_are_requests, turns.to) {
        (Some(false), 1) => "turn",
        (Some(false), _) => "turns",
        (_, 1) => "request",
        _ => "requests",
    };
    Some(format!(
        "{} of {} connections were closed by {} after {exactly}{} {noun}.",
        percent(share),
        connections.role.label(),
        closer(closed, connections.role),
        range(turns),
    ))
}

/// The closer in words.
fn closer(closed: &ClosedConnections, role: Role) -> &'static str {
    match (closed.closed_by, role) {
        (Closer::Local, Role::Server) | (Closer::Remote, Role::Client) => "the server",
        (Closer::Local, Role::Client) | (Closer::Remote, Role::Server) => "the client",
        _ => "a timeout",
    }
}

/// What is left in TIME_WAIT.
fn time_wait(connections: &Connections, seconds: f64) -> Option<String> {
    if connections.time_wait_created == 0 {
        return None;
    }
    Some(format!(
        "TIME_WAIT in the {} role: {} created ({}), {} remaining at the end.",
        connections.role.label(),
        count(connections.time_wait_created),
        rate(connections.time_wait_created, seconds),
        count(connections.time_wait_standing),
    ))
}

/// Worth a sentence where ports may run out.
fn ephemeral_ports(service: &Service) -> Option<String> {
    let ports = service.ephemeral_ports?;
    let share = ports.used as f64 / f64::from(ports.available);
    (share >= WORTH_A_SENTENCE).then(|| {
        format!(
            "Toward its busiest remote endpoint the service uses {} of {} ephemeral ports ({}), \
             including those in TIME_WAIT.",
            count(ports.used),
            count(ports.available.into()),
            percent(share.min(1.0)),
        )
    })
}
