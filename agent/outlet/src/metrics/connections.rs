//! The ledger's TCP connections as counters and gauges.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use tlsprof_common::Closer;
use tlsprof_ledger::{Closed, ConnectionAccount, Ledger};

use super::families::{
    CONNECTION_BYTES, CONNECTION_TURNS_ESTIMATED, CONNECTIONS_CLOSED, CONNECTIONS_FROM_BEFORE,
    CONNECTIONS_OPENED, CONNECTIONS_OWNERLESS, CONNECTIONS_RESET, EPHEMERAL_PORTS_USED,
    TIME_WAIT_CREATED, TIME_WAIT_SOCKETS,
};
use super::rows::{one, write};

pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let opened = accounts(ledger).map(|(labels, account)| (labels, account.opened));
    write(encoder, &CONNECTIONS_OPENED, opened)?;
    let closed = by_closer(ledger, |closed| closed.count);
    write(encoder, &CONNECTIONS_CLOSED, closed)?;
    let reset = by_closer(ledger, |closed| closed.reset);
    write(encoder, &CONNECTIONS_RESET, reset)?;
    let estimated = accounts(ledger);
    let estimated = estimated.map(|(labels, account)| (labels, account.estimated_turns.turns));
    write(encoder, &CONNECTION_TURNS_ESTIMATED, estimated)?;
    let services = ledger.services();
    let from_before = services.map(|(name, service)| ([name], service.connections_from_before));
    write(encoder, &CONNECTIONS_FROM_BEFORE, from_before)?;
    write(encoder, &CONNECTIONS_OWNERLESS, one(ledger.ownerless()))?;
    let bytes = accounts(ledger).flat_map(|([name, role], account)| {
        [
            ([name, role, "received"], account.bytes_received),
            ([name, role, "sent"], account.bytes_sent),
        ]
    });
    write(encoder, &CONNECTION_BYTES, bytes)?;
    time_wait(encoder, ledger)
}

/// The labels that every account has, and the account.
fn accounts(ledger: &Ledger) -> impl Iterator<Item = ([&str; 2], &ConnectionAccount)> {
    ledger.services().flat_map(|(name, service)| {
        let roles = service.connections.iter();
        roles.map(move |(role, account)| ([name, role.label()], account))
    })
}

fn by_closer(
    ledger: &Ledger,
    of: impl Fn(&Closed) -> u64 + Copy,
) -> impl Iterator<Item = ([&str; 3], u64)> {
    accounts(ledger).flat_map(move |([name, role], account)| {
        Closer::ALL.map(|closer| {
            let count = account.closed.get(&closer).map_or(0, of);
            ([name, role, closer.label()], count)
        })
    })
}

fn time_wait(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let created = accounts(ledger).map(|(labels, account)| (labels, account.time_wait_created));
    write(encoder, &TIME_WAIT_CREATED, created)?;
    let now = ledger.now();
    let standing =
        accounts(ledger).map(|(labels, account)| (labels, account.time_wait_standing(now)));
    write(encoder, &TIME_WAIT_SOCKETS, standing)?;
    let used = ledger.services().filter_map(|(name, service)| {
        let ports = service.ephemeral_ports(now)?;
        Some(([name], ports.ratio()))
    });
    write(encoder, &EPHEMERAL_PORTS_USED, used)
}
