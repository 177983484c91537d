//! The accept queues of a service, from its account.

use tlsprof_evidence::accept_queue::Queue;
use tlsprof_ledger::AcceptQueueAccount;

use super::build::quantiles;
use super::model::{AcceptQueue, AcceptWait, ListeningQueues, QueueLength};

pub(super) fn of(account: &AcceptQueueAccount) -> Option<AcceptQueue> {
    let queues = account.was_read.then(|| ListeningQueues {
        listeners: account.listeners,
        present: length(account.present),
        peak: length(account.peak),
        overflows: account.overflows,
    });
    let connections = account.wait.count();
    let wait = (connections > 0).then(|| AcceptWait {
        connections,
        seconds: quantiles(&account.wait),
    });
    (queues.is_some() || wait.is_some()).then_some(AcceptQueue { queues, wait })
}

fn length(queue: Queue) -> QueueLength {
    QueueLength {
        length: queue.length,
        limit: queue.limit,
    }
}
