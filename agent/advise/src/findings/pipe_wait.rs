//! Handshakes wait for what comes through a pipe.

use super::{Advice, Kind, Target};
use crate::Finding;
use crate::subject::Subject;
use crate::waits::wait;
use tlsprof_common::{Role, WaitReason};

pub(crate) static KIND: Kind = Kind {
    label: "pipe-wait",
    summary: "Handshakes wait for another process, through a pipe",
    risk: "Random numbers must come from a source that the kernel seeds. What else came through \
           the pipe, keys or a log, must be as safe where it goes then.",
    rules: &[(Role::Server, find)],
    remedy,
    calibration: None,
};

fn find(subject: &Subject<'_>) -> Option<Finding> {
    wait(subject, WaitReason::Pipe, &KIND)
}

/// What comes or goes through the pipe is not known.
fn remedy(_: Target) -> Advice {
    (
        "See what the pipe is, and who is at its other end: `ls -l /proc/PID/fd`, `lsof -E`. A random \
         source: let the TLS library seed itself from the kernel instead, see random-wait. A log: \
         write it to a file, or log less in handshakes. A daemon for keys or sessions: find out why \
         it is late.",
        "",
    )
}
