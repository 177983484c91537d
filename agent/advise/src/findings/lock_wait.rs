//! Handshakes wait for locks.

use crate::finding::{Advice, Kind, Target};
use crate::subject::Subject;
use crate::waits::wait;
use crate::{Finding, Server};
use tlsprof_common::{Role, WaitReason};

pub(crate) static KIND: Kind = Kind {
    label: "lock-wait",
    page: include_str!("../../../../docs/findings/lock-wait.md"),
    summary: "Handshakes wait for locks that other threads hold",
    risk: "Sessions in the memory of one process cannot be resumed in another. Check for refused \
           sessions afterwards.",
    rules: &[(Role::Server, find)],
    remedy,
    calibration: None,
};

fn find(subject: &Subject<'_>) -> Option<Finding> {
    wait(subject, WaitReason::Lock, &KIND)
}

fn remedy(target: Target) -> Advice {
    match target.server {
        Server::Nginx => (
            "Use session tickets only: the shared cache has a single lock.",
            "ssl_session_cache off;\nssl_session_tickets on;",
        ),
        Server::Apache => (
            "Use a mutex without a file for the session cache, or session tickets only.",
            "Mutex pthread ssl-cache",
        ),
        Server::HaProxy => (
            "Use session tickets only, or fewer threads: the session cache has a single lock for \
             all threads.",
            "tune.ssl.cachesize 0",
        ),
        _ => (
            "Find the lock with `perf trace` or `perf lock` on the service. Common ones: a session \
             cache with a single lock (tickets need none), and the memory allocator.",
            "",
        ),
    }
}
