//! Handshakes wait for locks.

use super::{Advice, Kind, Target};
use crate::subject::Subject;
use crate::waits::wait;
use crate::{Finding, Server};
use tlsprof_common::{Role, WaitReason};

pub(crate) static KIND: Kind = Kind {
    label: "lock-wait",
    summary: "Handshakes wait for locks that other threads hold",
    risk: "Sessions in the memory of one process cannot be resumed in another: look at refused \
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
            "The shared session cache has one lock: do with tickets alone.",
            "ssl_session_cache off;\nssl_session_tickets on;",
        ),
        Server::Apache => (
            "Take a mutex that needs no file for the session cache, or do with tickets alone.",
            "Mutex pthread ssl-cache",
        ),
        Server::HaProxy => (
            "The session cache has one lock for all threads: do with tickets alone, or with fewer \
             threads.",
            "tune.ssl.cachesize 0",
        ),
        _ => (
            "Find the lock with `perf trace` or `perf lock` on the service. Usual ones: a session \
             cache with a single lock (tickets need none), and the memory allocator.",
            "",
        ),
    }
}
