//! Handshakes wait for disks.

use super::lock_wait;
use crate::finding::{Advice, Kind, Target};
use crate::subject::Subject;
use crate::waits::wait;
use crate::{Finding, Server};
use tlsprof_common::{Role, WaitReason};

pub(crate) static KIND: Kind = Kind {
    label: "disk-wait",
    page: include_str!("../../../../docs/findings/disk-wait.md"),
    summary: "Handshakes wait for a disk",
    risk: lock_wait::KIND.risk,
    rules: &[(Role::Server, find)],
    remedy,
    calibration: None,
};

fn find(subject: &Subject<'_>) -> Option<Finding> {
    wait(subject, WaitReason::Disk, &KIND)
}

fn remedy(target: Target) -> Advice {
    match target.server {
        Server::Apache => (
            "Keep the session cache in shared memory instead of a DBM file, and locks in memory.",
            "SSLSessionCache shmcb:/run/apache2/ssl_scache(2097152)\n\
             Mutex pthread ssl-cache",
        ),
        Server::Domino => (
            "Make sure in notes.ini that the server does not log each handshake or TLS debug output.",
            "SSL_LOG_SUCCESS=0",
        ),
        _ => (
            "Keep the session cache in memory, and avoid reading keys or certificates, writing logs \
             and swapping during handshakes.",
            "",
        ),
    }
}
