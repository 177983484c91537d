//! The TCP connections of one service.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::outlet::html::chart;
use crate::outlet::html::table::{Cell, Head, table};
use crate::outlet::report::model::{Connections, Service};
use crate::outlet::terminal::printable;
use crate::units::{bytes, count, percent};

use super::service::remarks;
use super::text::connections;

/// Classes of turns that are drawn; the JSON has all.
const CLASSES: usize = 24;

pub(super) fn tcp(service: &Service, seconds: f64) -> Markup {
    if service.connection_count() == 0 {
        return html! {};
    }
    let sentences = service
        .connections
        .iter()
        .flat_map(|one| [connections::peak(one), connections::time_wait(one, seconds)]);
    let sentences = sentences
        .chain([connections::ephemeral_ports(service)])
        .flatten();
    html! {
        h3 { "TCP connections" }
        @for sentence in sentences { p { (printable(&sentence)) } }
        @for one in &service.connections {
            (closers(one))
            (turns(one))
        }
        (remarks(connections::notes(service)))
    }
}

fn closers(one: &Connections) -> Markup {
    let heads = [
        Head::Left("role"),
        Head::Right("opened"),
        Head::Left("closed by"),
        Head::Right("connections"),
        Head::Right("reset"),
        Head::Right("received"),
        Head::Right("sent"),
    ];
    let rows = one.closed.iter().map(|closed| {
        vec![
            Cell::Text(printable(&one.role).into_owned()),
            Cell::Number(count(one.opened)),
            Cell::Text(connections::closer(closed, &one.role).to_owned()),
            Cell::Number(count(closed.count)),
            Cell::Number(count(closed.reset)),
            Cell::Number(bytes(one.bytes_received)),
            Cell::Number(bytes(one.bytes_sent)),
        ]
    });
    table(
        &format!("Who closes connections, {} role", printable(&one.role)),
        &heads,
        rows.collect(),
    )
}

/// How many connections had how many turns, whoever closed them.
fn turns(one: &Connections) -> Markup {
    let mut classes: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for class in one.closed.iter().flat_map(|closed| &closed.turns) {
        let sum = classes.entry((class.from, class.to)).or_default();
        *sum = sum.saturating_add(class.connections);
    }
    let total: u64 = classes.values().sum();
    let more = classes.len().saturating_sub(CLASSES);
    let (noun, title) = match one.turns_are_requests {
        Some(false) => ("turns", "Turns (may carry several requests)"),
        _ => ("requests", "Requests"),
    };
    let heads = [
        Head::Left(noun),
        Head::Right("connections"),
        Head::Right("share"),
        Head::Left("share, drawn"),
    ];
    let rows = classes.iter().take(CLASSES).map(|((from, to), number)| {
        let share = *number as f64 / total.max(1) as f64;
        let class = if from == to {
            count(u64::from(*from))
        } else {
            format!("{} to {}", count(u64::from(*from)), count(u64::from(*to)))
        };
        vec![
            Cell::Text(class),
            Cell::Number(count(*number)),
            Cell::Number(percent(share)),
            Cell::Chart(chart::bar(share, "socket_io", None)),
        ]
    });
    html! {
        @if total > 0 {
            (table(&format!("{title} on each connection, {} role", printable(&one.role)), &heads, rows.collect()))
            @if more > 0 { p class="soft small" { "And " (more) " more classes (all are in the JSON)." } }
        }
    }
}
