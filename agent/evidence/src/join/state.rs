//! Handshakes that are booked, and those that wait.

use std::time::Duration;

use super::process::Span;
use crate::Handshake;
use tlsprof_common::{Outcome, Resumption};

/// How long a process that has ended is remembered: its last handshakes come
/// after it.
pub(super) const AFTER_EXIT: Duration = Duration::from_secs(3);

/// A connection whose handshake is booked.
#[derive(Debug)]
pub(super) struct Settled {
    pub cipher: &'static str,
    pub version: &'static str,
    pub resumption: Resumption,
    /// None where its hellos were not read.
    pub may_be_http2: Option<bool>,
    /// A library handshake has named it.
    pub named: bool,
    /// CPU time of that library handshake, while the socket's is still to come.
    pub(crate) unpaired: Option<Unpaired>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Unpaired {
    pub began: Duration,
    pub cpu: Duration,
    pub(crate) completed: bool,
}

impl Unpaired {
    pub(super) fn of(handshake: &Handshake) -> Self {
        Self {
            began: handshake.began,
            cpu: handshake.cpu,
            completed: handshake.outcome == Outcome::Completed,
        }
    }
}

/// A handshake that waits.
#[derive(Debug)]
pub(super) struct Held {
    pub handshake: Box<Handshake>,
    pub(crate) span: Span,
    /// When it came.
    pub since: Duration,
    /// Its connection has ended since.
    pub closed: bool,
    pub why: Why,
}

impl Held {
    pub(super) fn has_completed(&self) -> bool {
        self.handshake.outcome == Outcome::Completed
    }
}

/// What it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The other source.
    Twin,
    /// The end of what is said in clear. True: the other source came.
    Alerts { compared: bool },
}
