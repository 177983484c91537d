//! The ledger's accept queues as a counter and gauges.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use tlsprof_ledger::{AcceptQueueAccount, Ledger};

use super::families::{ACCEPT_QUEUE_LENGTH, ACCEPT_QUEUE_LIMIT, LISTEN_OVERFLOWS};
use super::rows::write;

pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let overflows = accounts(ledger).map(|(labels, account)| (labels, account.overflows));
    write(encoder, &LISTEN_OVERFLOWS, overflows)?;
    // Those that listen now.
    let queues = || {
        let listening = accounts(ledger).filter(|(_, account)| account.listeners > 0);
        listening.map(|(labels, account)| (labels, account.present))
    };
    let lengths = queues().map(|(labels, queue)| (labels, u64::from(queue.length)));
    write(encoder, &ACCEPT_QUEUE_LENGTH, lengths)?;
    let limits = queues().map(|(labels, queue)| (labels, u64::from(queue.limit)));
    write(encoder, &ACCEPT_QUEUE_LIMIT, limits)
}

/// Those whose queues could be read.
fn accounts(ledger: &Ledger) -> impl Iterator<Item = ([&str; 1], &AcceptQueueAccount)> {
    let accounts = ledger.services();
    let accounts = accounts.map(|(name, service)| ([name], &service.accept_queue));
    accounts.filter(|(_, account)| account.was_read)
}
