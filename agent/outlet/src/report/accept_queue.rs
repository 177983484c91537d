//! The accept queues of one service: how full they were, and for how long connections
//! waited in them.

use crate::document::{Block, Tone};
use tlsprof_common::units::{count, counted, time};
use tlsprof_report::model::{AcceptWait, ListeningQueues, Service};

/// Nothing where nothing was accepted and nothing waited.
pub(super) fn accept_queue(service: &Service) -> Option<Block> {
    let queue = service.accept_queue.as_ref()?;
    let queues = queue
        .queues
        .filter(|queues| queues.overflows > 0 || queues.peak.length > 0 || queue.wait.is_some());
    let parts = [
        queue.wait.as_ref().map(|waited| Block::Text(wait(waited))),
        queues.as_ref().map(|queues| Block::Text(length(queues))),
        queues
            .as_ref()
            .and_then(overflows)
            .map(|text| Block::Marked(Tone::Look, text)),
    ];
    let parts: Vec<Block> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| Block::section("Accept queue", parts))
}

fn wait(wait: &AcceptWait) -> String {
    format!(
        "{} waited {} to be accepted (p50), {} (p99), {} (max).",
        counted(wait.connections, "connection", "connections"),
        time(wait.seconds.p50),
        time(wait.seconds.p99),
        time(wait.seconds.max),
    )
}

fn length(queues: &ListeningQueues) -> String {
    let listeners = u64::from(queues.listeners);
    let at_most = u64::from(queues.peak.length);
    let waited = if at_most == 0 {
        "The queue was empty in every sample (1/s)".to_owned()
    } else {
        format!(
            "Peak queue length: {} (limit {})",
            count(at_most),
            count(queues.peak.limit.into()),
        )
    };
    format!(
        "{waited}; {} at the end.",
        counted(listeners, "listening socket", "listening sockets")
    )
}

fn overflows(queues: &ListeningQueues) -> Option<String> {
    (queues.overflows > 0).then(|| {
        format!(
            "{} dropped because an accept queue was full: clients retried after a second or more, \
             or gave up. The service accepts too slowly, or its backlog is too small.",
            counted(queues.overflows, "packet was", "packets were"),
        )
    })
}
