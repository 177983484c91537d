//! The ledger's accept queues as a counter and gauges.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use crate::ledger::{AcceptQueueAccount, Ledger};

use super::collector::{Labels, Writer};

pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_listen_overflows",
        "Packets that the kernel dropped because an accept queue of the service was full.",
    )?;
    for (labels, account) in accounts(ledger) {
        metric.count(&labels, account.overflows)?;
    }
    let mut metric = Writer::gauge(
        encoder,
        "tlsprof_accept_queue_length",
        "Connections that wait to be accepted in the fullest accept queue of the service.",
    )?;
    for (labels, account) in listening(ledger) {
        metric.value(&labels, account.present.length.into())?;
    }
    let mut metric = Writer::gauge(
        encoder,
        "tlsprof_accept_queue_limit",
        "How many may wait in that queue; the kernel lets one more in.",
    )?;
    for (labels, account) in listening(ledger) {
        metric.value(&labels, account.present.limit.into())?;
    }
    Ok(())
}

/// Those whose queues could be read.
fn accounts(ledger: &Ledger) -> impl Iterator<Item = (Labels<'_, 1>, &AcceptQueueAccount)> {
    let accounts = ledger.services().map(|(name, service)| {
        let labels: Labels<'_, 1> = [("service_name", name)];
        (labels, &service.accept_queue)
    });
    accounts.filter(|(_, account)| account.was_read)
}

/// Those that listen now.
fn listening(ledger: &Ledger) -> impl Iterator<Item = (Labels<'_, 1>, &AcceptQueueAccount)> {
    accounts(ledger).filter(|(_, account)| account.listeners > 0)
}
