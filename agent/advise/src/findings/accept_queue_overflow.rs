//! Connections that are established, and not accepted.

use std::time::Duration;

use crate::finding::{Advice, Kind, Target};
use crate::subject::Subject;
use crate::{Evidence, Finding, Observed, Prediction, Server, Severity};
use tlsprof_common::Role;
use tlsprof_common::units::{count, percent, time};
use tlsprof_ledger::AcceptQueueAccount;

pub(crate) static KIND: Kind = Kind {
    label: "accept-queue-overflow",
    page: include_str!("../../../../docs/findings/accept-queue-overflow.md"),
    summary: "Connections are dropped because the accept queue is full",
    risk: "A longer queue hides that a server is too slow. Clients wait in it, and may have given \
           up before they are served. Each waiting connection uses kernel memory.",
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
            "The kernel dropped {} packets that would have opened connections ({} of all attempts). \
             Each such client retries after a second or more.",
            count(queue.overflows),
            percent(share)
        ));
    }
    all.push(format!(
        "Peak queue length: {} (limit {}).",
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
        return format!(
            "{wait}: the server is fast enough, but the queue is too short for bursts."
        );
    }
    let handshakes = subject.account.handshake_cpu().as_secs_f64();
    let cpu = subject.cpu();
    if cpu > 0.0 && handshakes / cpu >= MOST {
        return format!(
            "{wait}: the server does not keep up, and TLS handshakes use {} of its CPU. Reduce \
             their cost or their number first: a longer queue only makes clients wait longer.",
            subject.share_in_words(handshakes)
        );
    }
    format!(
        "{wait}: the server does not accept fast enough, because it lacks workers, threads or CPU. \
         A longer queue only makes clients wait longer."
    )
}

fn remedy(target: Target) -> Advice {
    match target.server {
        Server::Nginx => (
            "If connections wait long: reduce the load, or add workers and CPUs. If they arrive in \
             bursts: raise the queue limit, also in the kernel.",
            "listen 443 ssl backlog=4096;\n# sysctl net.core.somaxconn=4096",
        ),
        Server::Apache => (
            "If connections wait long: reduce the load, or add workers (MaxRequestWorkers) and \
             CPUs. If they arrive in bursts: raise the queue limit, also in the kernel.",
            "ListenBacklog 4096\n# sysctl net.core.somaxconn=4096",
        ),
        Server::HaProxy => (
            "If connections wait long: reduce the load, raise maxconn, or add threads and CPUs. If \
             they arrive in bursts: raise the queue limit in the frontend, also in the kernel.",
            "backlog 4096\n# sysctl net.core.somaxconn=4096",
        ),
        Server::NodeJs => (
            "If connections wait long: reduce the load, or add processes (cluster) and CPUs. If \
             they arrive in bursts: raise the queue limit (511 by default), also in the kernel.",
            "server.listen({ port: 443, backlog: 4096 })\n// sysctl net.core.somaxconn=4096",
        ),
        Server::Envoy => (
            "If connections wait long: reduce the load, or add workers (--concurrency) and CPUs. If \
             they arrive in bursts: raise the queue limit in the listener, also in the kernel.",
            "tcp_backlog_size: 4096\n# sysctl net.core.somaxconn=4096",
        ),
        Server::Domino => (
            "If connections wait long: reduce the load, or raise the number of active threads in \
             the Server document (Internet Protocols, HTTP) if there is CPU left. If they arrive in \
             bursts: raise the kernel's limit, then restart the HTTP task.",
            "sysctl net.core.somaxconn=4096",
        ),
        Server::Stunnel | Server::Caddy | Server::Unknown => (
            "If connections wait long: reduce the load, or add threads, processes or CPUs. If they \
             arrive in bursts: raise the queue limit (the backlog of listen(2)), also in the \
             kernel.",
            "sysctl net.core.somaxconn=4096",
        ),
    }
}
