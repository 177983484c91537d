//! Handshakes wait for what comes through a pipe.

use crate::Finding;
use crate::finding::{Advice, Kind, Target};
use crate::subject::Subject;
use crate::waits::wait;
use tlsprof_common::{Role, WaitReason};

pub(crate) static KIND: Kind = Kind {
    label: "pipe-wait",
    page: include_str!("../../../../docs/findings/pipe-wait.md"),
    summary: "Handshakes wait for another process, through a pipe",
    risk: "Random numbers must come from a source that the kernel seeds. Anything else that went \
           through the pipe, such as keys or a log, must be as well protected in its new place.",
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
        "Identify the pipe and the process at its other end: `ls -l /proc/PID/fd`, `lsof -E`. \
         Random source: let the TLS library seed itself from the kernel, see random-wait. Log: \
         write it to a file, or log less during handshakes. Daemon for keys or sessions: find out \
         why it is slow.",
        "",
    )
}
