//! Connections that are established, and not accepted.

use std::time::Duration;

use super::{Advice, Kind, Target};
use crate::subject::Subject;
use crate::{Evidence, Finding, Observed, Prediction, Server, Severity};
use tlsprof_common::Role;
use tlsprof_common::units::{count, percent, time};
use tlsprof_ledger::AcceptQueueAccount;

pub(crate) static KIND: Kind = Kind {
    label: "accept-queue-overflow",
    summary: "Connections dropped before they are accepted",
    risk: "A longer queue hides that a server is too slow: clients wait in it, and may have gone \
           when their turn comes. Each waiting connection takes kernel memory.",
    rules: &[(Role::Server, find)],
    remedy,
    calibration: None,
};

/// Drops from which it is no accident.
const DROPS: u64 = 10;

/// From this share of the connections on, many clients are turned away for a second or more.
const MANY: f64 = 0.01;

/// Taken up to this share, a queue may overflow with the next burst.
const NEARLY_FULL: f64 = 0.8;

/// So long an accepted connection may wait: a person notices a tenth of a second.
const LONG: Duration = Duration::from_millis(100);

/// Handshakes that take this share of the CPU time are what keeps a server from accepting.
const MOST: f64 = 0.5;

/// Connections that are dropped because the queue is full, or wait long in one that
/// nearly is.
fn find(subject: &Subject<'_>) -> Option<Finding> {
    let queue = &subject.account.accept_queue;
    let opened = subject
        .connections(Role::Server)
        .map_or(0, |kept| kept.opened);
    let drops = queue.overflows;
    let dropped = drops >= DROPS && subject.enough(opened + drops);
    let slow = is_nearly_full(queue) && waits_long(queue) && subject.enough(queue.wait.count());
    if !dropped && !slow {
        return None;
    }
    let share = drops as f64 / (opened + drops).max(1) as f64;
    let severity = match dropped {
        true if share >= MANY => Severity::High,
        true => Severity::Medium,
        false => Severity::Low,
    };
    let title = if dropped {
        "Connections are dropped because the accept queue is full"
    } else {
        "The accept queue is nearly full, and connections wait in it"
    };
    let evidence = Evidence {
        basis: subject.basis(Observed::Connections, opened),
        statements: statements(subject, queue, share),
        figures: vec![
            ("dropped_packets", drops as f64),
            ("connections", opened as f64),
            ("queue_peak", f64::from(queue.peak.length)),
            ("queue_limit", f64::from(queue.peak.limit)),
            ("wait_p50_seconds", queue.wait.quantile(0.5).as_secs_f64()),
            ("wait_p99_seconds", queue.wait.quantile(0.99).as_secs_f64()),
        ],
    };
    let kind = (&KIND, Role::Server);
    let prediction = Prediction::Nothing;
    Some(subject.finding(kind, severity, title.to_owned(), evidence, prediction))
}

fn is_nearly_full(queue: &AcceptQueueAccount) -> bool {
    queue.peak.length > 0
        && f64::from(queue.peak.length) >= NEARLY_FULL * f64::from(queue.peak.limit)
}

fn waits_long(queue: &AcceptQueueAccount) -> bool {
    queue.wait.quantile(0.99) >= LONG
}

fn statements(subject: &Subject<'_>, queue: &AcceptQueueAccount, share: f64) -> Vec<String> {
    let mut all = Vec::new();
    if queue.overflows > 0 {
        all.push(format!(
            "The kernel dropped {} packets that would have opened connections ({} of these and of \
             the connections that were opened): such a client tries again after a second or more.",
            count(queue.overflows),
            percent(share)
        ));
    }
    all.push(format!(
        "At most {} connections were seen to wait in a queue for {}.",
        count(queue.peak.length.into()),
        count(queue.peak.limit.into())
    ));
    if queue.wait.count() > 0 {
        all.push(cause(subject, queue));
    }
    all
}

/// What is to blame: who accepts, or the length of the queue.
fn cause(subject: &Subject<'_>, queue: &AcceptQueueAccount) -> String {
    let wait = format!(
        "Accepted connections waited {} (p50) and {} (p99)",
        time(queue.wait.quantile(0.5).as_secs_f64()),
        time(queue.wait.quantile(0.99).as_secs_f64())
    );
    if !waits_long(queue) {
        return format!("{wait}: the queue is too short for bursts, the server is fast enough.");
    }
    let handshakes = subject.account.handshake_cpu().as_secs_f64();
    let cpu = subject.cpu();
    if cpu > 0.0 && handshakes / cpu >= MOST {
        return format!(
            "{wait}: the server does not keep up, and TLS handshakes take {} of its CPU. Make these \
             cheaper or fewer first; a longer queue makes clients wait longer.",
            subject.share_in_words(handshakes)
        );
    }
    format!(
        "{wait}: the server does not accept fast enough, for want of workers, threads or CPU. A \
         longer queue makes clients wait longer."
    )
}

fn remedy(target: Target) -> Advice {
    match target.server {
        Server::Nginx => (
            "Where connections wait long: take off work, or add workers and CPUs. Where they come in \
             bursts: allow a longer queue, in the kernel too.",
            "listen 443 ssl backlog=4096;\n# sysctl net.core.somaxconn=4096",
        ),
        Server::Apache => (
            "Where connections wait long: take off work, or allow more workers (MaxRequestWorkers) \
             and CPUs. Where they come in bursts: allow a longer queue, in the kernel too.",
            "ListenBacklog 4096\n# sysctl net.core.somaxconn=4096",
        ),
        Server::HaProxy => (
            "Where connections wait long: take off work, raise maxconn, or add threads and CPUs. \
             Where they come in bursts: allow a longer queue in the frontend, in the kernel too.",
            "backlog 4096\n# sysctl net.core.somaxconn=4096",
        ),
        Server::NodeJs => (
            "Where connections wait long: take off work, or add processes (cluster) and CPUs. Where \
             they come in bursts: allow a longer queue (511 by default), in the kernel too.",
            "server.listen({ port: 443, backlog: 4096 })\n// sysctl net.core.somaxconn=4096",
        ),
        Server::Envoy => (
            "Where connections wait long: take off work, or add workers (--concurrency) and CPUs. \
             Where they come in bursts: allow a longer queue in the listener, in the kernel too.",
            "tcp_backlog_size: 4096\n# sysctl net.core.somaxconn=4096",
        ),
        Server::Domino => (
            "Where connections wait long: take off work, or raise the number of active threads in \
             the Server document (Internet Protocols, HTTP) if there is CPU left. Where they come in \
             bursts: allow longer queues in the kernel, then restart the HTTP task.",
            "sysctl net.core.somaxconn=4096",
        ),
        Server::Stunnel | Server::Caddy | Server::Unknown => (
            "Where connections wait long: take off work, or add threads, processes or CPUs. Where \
             they come in bursts: allow a longer queue (the argument of listen(2)), in the kernel too.",
            "sysctl net.core.somaxconn=4096",
        ),
    }
}
