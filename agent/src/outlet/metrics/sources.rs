//! Which source showed handshakes, and how far the sources agree.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use crate::evidence::{Role, Source};
use crate::ledger::{HandshakeKey, HandshakeSum, Ledger, RoleAccount, ServiceAccount};

use super::collector::{Labels, Writer};

pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    by_source(encoder, ledger)?;
    offloaded(encoder, ledger)?;
    flights(encoder, ledger)?;
    agreement(encoder, ledger)
}

/// The labels that every account has, and the account.
pub(super) fn accounts(ledger: &Ledger) -> impl Iterator<Item = (Labels<'_, 2>, &RoleAccount)> {
    ledger.services().flat_map(|(name, service)| {
        service.roles.iter().map(move |(role, account)| {
            let labels: Labels<'_, 2> = [("service_name", name), ("role", role.label())];
            (labels, account)
        })
    })
}

fn by_source(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_handshakes_by_source",
        "TLS handshakes that ended, by the source of their figures.",
    )?;
    for (name, service) in ledger.services() {
        for role in service.roles.keys() {
            for source in [Source::Library, Source::Socket] {
                let labels: Labels<'_, 3> = [
                    ("service_name", name),
                    ("role", role.label()),
                    ("source", source.label()),
                ];
                metric.count(&labels, count(service, *role, source))?;
            }
        }
    }
    Ok(())
}

fn count(service: &ServiceAccount, role: Role, source: Source) -> u64 {
    let those =
        |(key, _): &(&HandshakeKey, &HandshakeSum)| key.role == role && key.source == source;
    let sums = service.handshakes.iter().filter(those);
    sums.map(|(_, sum)| sum.count).sum()
}

fn offloaded(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_handshakes_offloaded",
        "TLS handshakes answered by another thread than the one that read the socket, where further threads may have worked; their CPU time is a lower bound.",
    )?;
    for (labels, account) in accounts(ledger) {
        metric.count(&labels, account.socket.offloaded)?;
    }
    Ok(())
}

fn flights(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_handshake_flight_cpu_seconds",
        "CPU time of TLS handshakes that only socket calls showed, up to the server's first answer and after it.",
    )?;
    for ([name, role], account) in accounts(ledger) {
        for (flight, cpu) in [
            ("first", account.socket.first_flight),
            ("last", account.socket.last_flight),
        ] {
            let labels: Labels<'_, 3> = [name, role, ("flight", flight)];
            metric.seconds(&labels, cpu)?;
        }
    }
    Ok(())
}

fn agreement(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_agreement_handshakes",
        "Completed TLS handshakes that both sources saw.",
    )?;
    for (labels, account) in accounts(ledger) {
        metric.count(&labels, account.agreement.handshakes)?;
    }
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_agreement_cpu_seconds",
        "CPU time of the TLS handshakes that both sources saw, as each measured it.",
    )?;
    for ([name, role], account) in accounts(ledger) {
        for (source, cpu) in [
            (Source::Library, account.agreement.library),
            (Source::Socket, account.agreement.socket),
        ] {
            let labels: Labels<'_, 3> = [name, role, ("source", source.label())];
            metric.seconds(&labels, cpu)?;
        }
    }
    Ok(())
}
