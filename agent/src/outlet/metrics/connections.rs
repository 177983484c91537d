//! The ledger's TCP connections as counters and gauges.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use crate::evidence::Closer;
use crate::ledger::{Closed, ConnectionAccount, Ledger};

use super::collector::{Labels, NONE, Writer};

pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    openings(encoder, ledger)?;
    endings(encoder, ledger)?;
    from_before(encoder, ledger)?;
    bytes(encoder, ledger)?;
    time_wait(encoder, ledger)?;
    ephemeral_ports(encoder, ledger)
}

/// The labels that every account has, and the account.
fn accounts(ledger: &Ledger) -> impl Iterator<Item = (Labels<'_, 2>, &ConnectionAccount)> {
    ledger.services().flat_map(|(name, service)| {
        service.connections.iter().map(move |(role, account)| {
            let labels: Labels<'_, 2> = [("service_name", name), ("role", role.label())];
            (labels, account)
        })
    })
}

fn openings(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_connections_opened",
        "TCP connections that were opened.",
    )?;
    for (labels, account) in accounts(ledger) {
        metric.count(&labels, account.opened)?;
    }
    Ok(())
}

fn endings(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_connections_closed",
        "TCP connections that ended, by who closed first: by close_notify, FIN or RST.",
    )?;
    by_closer(&mut metric, ledger, |closed| closed.count)?;
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_connections_reset",
        "TCP connections that ended by RST from either side, by who closed first.",
    )?;
    by_closer(&mut metric, ledger, |closed| closed.reset)
}

fn by_closer(metric: &mut Writer<'_>, ledger: &Ledger, of: impl Fn(&Closed) -> u64) -> fmt::Result {
    for ([name, role], account) in accounts(ledger) {
        for closer in Closer::ALL {
            let labels: Labels<'_, 3> = [name, role, ("closed_by", closer.label())];
            metric.count(&labels, account.closed.get(&closer).map_or(0, &of))?;
        }
    }
    Ok(())
}

fn from_before(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_connections_from_before",
        "TCP connections that ended, but had been open before the agent started; in no other metric.",
    )?;
    for (name, service) in ledger.services() {
        let labels: Labels<'_, 1> = [("service_name", name)];
        metric.count(&labels, service.connections_from_before)?;
    }
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_connections_ownerless",
        "TCP connections that ended before a process read, wrote or closed them.",
    )?;
    metric.count(&NONE, ledger.ownerless())
}

fn bytes(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_connection_bytes",
        "Payload of TCP connections that ended, in bytes.",
    )?;
    for ([name, role], account) in accounts(ledger) {
        for (direction, bytes) in [
            ("received", account.bytes_received),
            ("sent", account.bytes_sent),
        ] {
            let labels: Labels<'_, 3> = [name, role, ("direction", direction)];
            metric.count(&labels, bytes)?;
        }
    }
    Ok(())
}

fn time_wait(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_time_wait_created",
        "TIME_WAIT sockets that connections left on this side.",
    )?;
    for (labels, account) in accounts(ledger) {
        metric.count(&labels, account.time_wait_created)?;
    }
    let mut metric = Writer::gauge(
        encoder,
        "tlsprof_time_wait_sockets",
        "TIME_WAIT sockets standing: created in the last 60 s, and bounded by the kernel's own count.",
    )?;
    for (labels, account) in accounts(ledger) {
        metric.value(&labels, account.time_wait_standing(ledger.now()))?;
    }
    Ok(())
}

fn ephemeral_ports(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::gauge(
        encoder,
        "tlsprof_ephemeral_ports_used_ratio",
        "Share of the ephemeral ports that connections to the busiest remote endpoint take up, open or in TIME_WAIT.",
    )?;
    for (name, service) in ledger.services() {
        if let Some(ports) = service.ephemeral_ports(ledger.now()) {
            let labels: Labels<'_, 1> = [("service_name", name)];
            metric.ratio(&labels, ports.ratio())?;
        }
    }
    Ok(())
}
