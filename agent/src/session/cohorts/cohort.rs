//! What was followed of one service in one role. Pure.

use std::collections::{BTreeSet, VecDeque};
use std::mem;

use tlsprof_common::{Carries, Connection, ConnectionId, Resumption};
use tlsprof_evidence::Evidence;

use super::fractions::Fractions;
use super::handshakes::Handshakes;
use super::turns::Turns;

/// Connections that are looked back at when the first window begins, at least.
pub(super) const LEAST_BEFORE: usize = 20;
/// So many are forgotten at once while all are followed.
pub(super) const MOST_BEFORE: usize = 1000;
/// Fewer failures say little of how many there were.
const LEAST_FAILURES: u64 = 10;
/// Ends of connections that are kept, at most.
const MOST_ENDS: usize = 256;

/// One service in one role.
#[derive(Debug)]
pub(super) struct Cohort {
    /// Of the window under way, or the last ones while socket calls are seen all the time.
    pub(super) followed: BTreeSet<ConnectionId>,
    /// Their handshakes, by how they ended.
    pub(super) completed: Handshakes,
    pub(super) failed: Handshakes,
    /// How TLS began on the connections that ended last.
    begins: VecDeque<Begin>,
    /// Connections with TLS that ended and were not followed, to be told how it began.
    unknown: Fractions,
    pub(super) turns: Turns,
}

/// How TLS began on a connection.
#[derive(Clone, Copy, Debug)]
struct Begin {
    cipher: &'static str,
    resumption: Resumption,
    may_be_http2: Option<bool>,
    /// Bytes of the handshake.
    received: u64,
    sent: u64,
}

impl Default for Cohort {
    fn default() -> Self {
        Self {
            followed: BTreeSet::default(),
            completed: Handshakes::of_each_window(),
            failed: Handshakes::of_windows_with(LEAST_FAILURES),
            begins: VecDeque::default(),
            unknown: Fractions::default(),
            turns: Turns::default(),
        }
    }
}

impl Cohort {
    /// Follows a connection while all are followed.
    pub(super) fn follow_for_later(&mut self, connection: ConnectionId) {
        if self.followed.len() >= MOST_BEFORE {
            // The first ones had time for their handshakes, which those that wait are paid by.
            if self.waits() {
                return;
            }
            self.forget();
        }
        self.followed.insert(connection);
    }

    /// Forgets what was followed up to now.
    fn forget(&mut self) {
        self.followed.clear();
        self.completed.clear();
        if !self.failed.waits() {
            self.failed.clear();
        }
    }

    /// What was seen while all was followed is what is known, if it is enough.
    pub(super) fn look_back(&mut self, book: &mut impl FnMut(&Evidence)) {
        self.turns.settle(LEAST_BEFORE);
        if self.followed.len() >= LEAST_BEFORE {
            return self.settle(book);
        }
        if self.failed.waits() {
            self.failed.end(self.followed.len(), book);
        }
        self.forget();
    }

    /// Ends the last window: from now on all are followed. If no window had a connection, what
    /// follows will show more.
    pub(super) fn end_last(&mut self, book: &mut impl FnMut(&Evidence)) {
        if !self.completed.waits() {
            self.end(&[], book);
            self.failed.settle(book);
        }
    }

    /// Whether connections wait for what has been seen since the last time.
    pub(super) fn may_pay(&self) -> bool {
        let has_seen = self.completed.count() + self.failed.count() > 0;
        let is_enough = has_seen || !self.completed.waits();
        self.waits() && is_enough && !self.followed.is_empty()
    }

    /// What was seen stands for what waits, and is forgotten if that is all.
    pub(super) fn pay(&mut self, book: &mut impl FnMut(&Evidence)) {
        self.settle(book);
        self.failed.settle(book);
        if !self.waits() {
            *self = Self::default();
        }
    }

    pub(super) const fn waits(&self) -> bool {
        self.completed.waits() || self.failed.waits()
    }

    /// Ends a window. One in which nothing opened says nothing.
    pub(super) fn end(&mut self, cut: &[ConnectionId], book: &mut impl FnMut(&Evidence)) {
        for connection in cut {
            self.followed.remove(connection);
        }
        self.turns.settle(1);
        match self.followed.is_empty() {
            true => self.completed.clear(),
            false => self.settle(book),
        }
    }

    /// What was seen stands for others.
    fn settle(&mut self, book: &mut impl FnMut(&Evidence)) {
        let connections = mem::take(&mut self.followed).len();
        let (completed, failed) = (self.completed.count(), self.failed.count());
        tracing::debug!(
            connections,
            completed,
            failed,
            "what was followed stands for others"
        );
        self.completed.end(connections, book);
        self.failed.end(connections, book);
    }

    pub(super) fn keep(&mut self, connection: &Connection) {
        if self.begins.len() >= MOST_ENDS {
            self.begins.pop_front();
        }
        self.begins.push_back(Begin {
            cipher: connection.cipher,
            resumption: connection.resumption,
            may_be_http2: connection.may_be_http2,
            received: (connection.bytes_received).saturating_sub(connection.application_received),
            sent: (connection.bytes_sent).saturating_sub(connection.application_sent),
        });
    }

    pub(super) fn complete(&mut self, connection: &mut Connection) {
        let (Some(share), Some(begin)) = (self.completed.share(), self.begins.front().copied())
        else {
            return;
        };
        self.unknown.add(share);
        if !self.unknown.take_one() {
            return;
        }
        self.begins.rotate_left(1);
        connection.carries = Carries::Tls;
        connection.cipher = begin.cipher;
        connection.resumption = begin.resumption;
        connection.may_be_http2 = begin.may_be_http2;
        connection.application_received = connection.bytes_received.saturating_sub(begin.received);
        connection.application_sent = connection.bytes_sent.saturating_sub(begin.sent);
    }

    /// Books what a connection had that was not followed.
    pub(super) fn stand_for_one(&mut self, book: &mut impl FnMut(&Evidence)) {
        self.completed.stand_for(1, book);
        self.failed.stand_for(1, book);
    }
}
