//! What belongs to a profile: what began in its window. Pure.
//!
//! One instant begins the window and one ends it, for all accounts alike. Whatever takes
//! time counts in the window in which it began, with all that it did: under a load that
//! never stops, as much is left out at one end as is added at the other, and of a load that
//! ended before the window did nothing is lost, although servers close a little later.
//! Docs: accounting.md, "The window".

use std::collections::BTreeSet;
use std::time::Duration;

use tlsprof_common::{Connection, ConnectionId, LifetimeCpu, ProcessEvent};
use tlsprof_evidence::Evidence;

/// Connections kept for each end of the window. Ids grow: the smallest is the oldest.
const MOST_AT_AN_EDGE: usize = 65_536;

/// The window of a profile, by the clock of the evidence.
#[derive(Debug, Default)]
pub(super) struct Window {
    began: Option<Duration>,
    ended: Option<Duration>,
    /// Connections that waited to be accepted when the window began, and when it ended.
    /// Their handshakes count where the connection was opened: a load that is over has
    /// nothing in the next window.
    waited_at_begin: BTreeSet<ConnectionId>,
    waited_at_end: BTreeSet<ConnectionId>,
}

impl Window {
    pub(super) fn begin(&mut self, now: Duration) {
        self.began = Some(now);
    }

    pub(super) fn end(&mut self, now: Duration) {
        self.ended = Some(now);
    }

    /// How long it has been open.
    pub(super) fn length(&self, now: Duration) -> Duration {
        let began = self.began.unwrap_or(now);
        self.clock(now).saturating_sub(began)
    }

    /// The time, at most that of its end.
    pub(super) fn clock(&self, now: Duration) -> Duration {
        self.ended.map_or(now, |ended| now.min(ended))
    }

    fn contains(&self, at: Duration) -> bool {
        !self.is_before(at) && self.ended.is_none_or(|ended| at < ended)
    }

    fn is_before(&self, at: Duration) -> bool {
        self.began.is_none_or(|began| at < began)
    }

    /// Whether evidence that the kernel gave the time `at` is to be booked. Cuts off what
    /// lies before the window or after it.
    pub(super) fn admits(&mut self, evidence: &mut Evidence, at: Duration) -> bool {
        match evidence {
            Evidence::Handshake(one) => self.has_handshake(one.began, one.connection),
            Evidence::Compared(one) => self.has_handshake(one.began, one.connection),
            Evidence::Opened(opening) => self.has_opening(opening.id, at),
            Evidence::Closed(connection) => self.has_end(connection),
            Evidence::Process(event) => {
                let admitted = self.contains(at);
                if let ProcessEvent::Exit { cpu, .. } | ProcessEvent::Exec { cpu, .. } = event
                    && !admitted
                {
                    // All that is in the window was read.
                    *cpu = LifetimeCpu::default();
                }
                admitted
            }
            Evidence::Hello(_) => true,
        }
    }

    fn has_handshake(&self, began: Duration, connection: Option<ConnectionId>) -> bool {
        match connection {
            Some(id) if self.waited_at_begin.contains(&id) => false,
            Some(id) if self.waited_at_end.contains(&id) => true,
            _ => self.contains(began),
        }
    }

    /// An opening is reported when the connection is first used.
    fn has_opening(&mut self, id: ConnectionId, at: Duration) -> bool {
        let admitted = self.contains(at);
        let waited = match (self.began, self.ended) {
            (Some(began), _) if at < began => &mut self.waited_at_begin,
            (Some(_), Some(_)) if admitted => &mut self.waited_at_end,
            _ => return admitted,
        };
        waited.insert(id);
        if waited.len() > MOST_AT_AN_EDGE {
            waited.pop_first();
        }
        admitted
    }

    fn has_end(&self, connection: &mut Connection) -> bool {
        let ended = connection.ended;
        let opened = connection
            .whole
            .map(|whole| ended.saturating_sub(whole.duration));
        if opened.is_some_and(|at| !self.is_before(at)) {
            return opened.is_some_and(|at| self.contains(at));
        }
        (connection.whole, connection.remote) = (None, None);
        self.contains(ended)
    }
}

#[cfg(test)]
mod tests;
