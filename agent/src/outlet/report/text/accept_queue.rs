//! The accept queues of one service: how full they were, and for how long connections
//! waited in them.

use crate::outlet::report::model::{AcceptWait, ListeningQueues, Service};
use crate::outlet::terminal::units::{count, counted, time};
use crate::outlet::terminal::{Paint, Style, wrap};

use super::paint_lines;
use super::service::section;

/// Nothing where nothing was accepted and nothing waited.
pub(super) fn accept_queue(service: &Service, style: Style) -> String {
    let Some(queue) = &service.accept_queue else {
        return String::new();
    };
    let queues = queue
        .queues
        .filter(|queues| queues.overflows > 0 || queues.peak.length > 0 || queue.wait.is_some());
    if queues.is_none() && queue.wait.is_none() {
        return String::new();
    }
    let mut out = section("Accept queue", style);
    if let Some(waited) = &queue.wait {
        out.push_str(&wrap(&wait(waited), 4, style.width));
    }
    if let Some(queues) = &queues {
        out.push_str(&wrap(&length(queues), 4, style.width));
        if let Some(sentence) = overflows(queues) {
            let lines = wrap(&sentence, 4, style.width);
            out.push_str(&paint_lines(style, Paint::Yellow, &lines));
        }
    }
    out
}

fn wait(wait: &AcceptWait) -> String {
    format!(
        "{} waited {} to be accepted (p50), {} (p99), at most {}.",
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
        "Nothing waited when it was looked at, every second".to_owned()
    } else {
        format!(
            "At most {} waited in one queue, which is for {}",
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
            "{} dropped because a queue was full: clients waited a second or longer and tried \
             again, or gave up. The service accepts too slowly, or its backlog is too small.",
            counted(queues.overflows, "packet was", "packets were"),
        )
    })
}
