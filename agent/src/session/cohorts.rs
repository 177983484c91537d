//! What the handshakes that were followed say of those that were not. Pure.
//!
//! Where socket calls are seen in windows only, the connections that open in one are a cohort:
//! what handshakes they had is known. Connections are always counted. For one that was not
//! followed, a handshake of the service's last cohort is booked once more, in turn, and as many
//! of them as the cohort had for each connection: a connection without TLS has none. So counts
//! follow the connections, and mean times are those of the cohorts. Failures wait for as many
//! windows as show some: one says little of how many there were. Connections that still wait when all
//! are followed again are estimated from those that are followed then. Turns are given to connections that end: see
//! [`turns`].

mod fractions;
mod handshakes;
mod hooked;
mod known;
mod sample;
mod turns;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::time::Duration;

use tlsprof_common::{
    Carries, Connection, ConnectionId, Opening, Outcome, Owner, Resumption, Role,
};
use tlsprof_evidence::{Evidence, Handshake};

use super::calls::Stage;
use fractions::Fractions;
use handshakes::Handshakes;
use hooked::Hooked;
use turns::Turns;

/// Connections that are looked back at when the first window begins, at least.
const LEAST_BEFORE: usize = 20;
/// So many are forgotten at once while all are followed.
const MOST_BEFORE: usize = 1000;
/// While all are followed, what was seen in so long stands for what waits. Few of its handshakes
/// are still under way at its end.
const LEAST_TIME: Duration = Duration::from_secs(32);
/// Fewer failures say little of how many there were.
const LEAST_FAILURES: u64 = 10;
/// Ends of connections that are kept, at most.
const MOST_ENDS: usize = 256;

/// What evidence of now belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// Socket calls are seen all the time.
    #[default]
    Whole,
    /// A window, and the end of what was followed in it.
    Window,
    /// Between two windows.
    Between,
}

impl From<Stage> for Mode {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Always => Self::Whole,
            Stage::Lead | Stage::Open | Stage::Ending => Self::Window,
            Stage::Out => Self::Between,
        }
    }
}

/// The cohorts of all services.
#[derive(Debug, Default)]
pub(super) struct Cohorts {
    mode: Mode,
    /// Whether there may be windows later.
    prepares: bool,
    /// When the window under way began, or the last one. While all are followed: since when what
    /// was seen may stand for what waits.
    window_began: Duration,
    hooked: Hooked,
    /// By the names that services are booked under: of those there are not too many.
    cohorts: BTreeMap<(String, Role), Cohort>,
    /// Who had the last connection on a port, as its server.
    servers: BTreeMap<u16, Owner>,
}

/// One service in one role.
#[derive(Debug)]
struct Cohort {
    /// Of the window under way, or the last ones while socket calls are seen all the time.
    followed: BTreeSet<ConnectionId>,
    /// Their handshakes, by how they ended.
    completed: Handshakes,
    failed: Handshakes,
    /// How TLS began on the connections that ended last.
    begins: VecDeque<Begin>,
    /// Connections with TLS that ended and were not followed, to be told how it began.
    unknown: Fractions,
    turns: Turns,
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

impl Cohorts {
    /// `prepares`: there may be windows later, and what is seen before stands for the first
    /// connections that are not followed.
    pub(super) fn new(prepares: bool) -> Self {
        Self {
            prepares,
            ..Self::default()
        }
    }

    /// Takes note of a connection of a service. If it was not followed, `book` gets what is
    /// to be booked for it.
    pub(super) fn opened(
        &mut self,
        service: &str,
        opening: &Opening,
        book: &mut impl FnMut(&Evidence),
    ) {
        if self.mode == Mode::Whole {
            if self.prepares {
                let cohort = self.of(service, opening.role);
                match opening.followed {
                    true => cohort.follow_for_later(opening.id),
                    // It was open before, and nobody had used it.
                    false => cohort.stand_for_one(book),
                }
            }
            return;
        }
        // Between windows what was followed is over.
        let is_followed = opening.followed && self.mode == Mode::Window;
        if opening.role == Role::Server {
            self.servers.insert(opening.port, opening.owner.clone());
        }
        let cohort = self.of(service, opening.role);
        if is_followed {
            cohort.followed.insert(opening.id);
        } else {
            cohort.stand_for_one(book);
        }
    }

    /// The opening of a connection that ended without an owner and was not followed: whose it
    /// is, its port says. None where nothing is known of that.
    pub(super) fn opening_of(&self, connection: &Connection) -> Option<Opening> {
        let whole = connection.whole.as_ref()?;
        let lost = connection.owner.is_none() && whole.turns.is_none();
        if self.mode == Mode::Whole || !lost || whole.role != Role::Server {
            return None;
        }
        Some(Opening {
            id: connection.id,
            owner: self.servers.get(&whole.port)?.clone(),
            role: whole.role,
            port: whole.port,
            remote: None,
            accept_wait: None,
            followed: false,
        })
    }

    /// Takes note of a handshake that is booked.
    pub(super) fn handshake(&mut self, service: &str, handshake: &Handshake) {
        if self.mode == Mode::Between || (self.mode == Mode::Whole && !self.prepares) {
            return;
        }
        let cohort = self.of(service, handshake.role);
        // Others were under way before.
        let is_followed = |id| cohort.followed.contains(&id);
        if handshake.connection.is_some_and(is_followed) {
            match handshake.outcome {
                Outcome::Completed => cohort.completed.add(handshake),
                Outcome::Failed | Outcome::Abandoned => cohort.failed.add(handshake),
            }
        }
    }

    /// Completes the end of a connection that was not followed: it carried TLS, and had turns, as
    /// others of the service did.
    pub(super) fn closed(&mut self, service: &str, connection: &mut Connection) {
        let Some(whole) = connection.whole else {
            return;
        };
        let (mode, began) = (self.mode, self.window_began);
        if mode == Mode::Whole {
            if self.prepares {
                let cohort = self.of(service, whole.role);
                cohort.turns.follow_for_later(connection, MOST_BEFORE);
            }
            return;
        }
        let opened = connection.ended.saturating_sub(whole.duration);
        let seen = self.hooked.between(opened, connection.ended);
        let cohort = self.of(service, whole.role);
        match connection.carries {
            Carries::Tls => cohort.keep(connection),
            Carries::Plain if whole.turns.is_none() => cohort.complete(connection),
            Carries::Plain | Carries::Handshake => {}
        }
        cohort.turns.closed(connection, began, seen);
    }

    /// Goes over to another mode at that time, all evidence of the one before being booked. The
    /// handshakes of `cut` connections were not followed to their end. `book` gets what is to be
    /// booked for connections that waited for what others show, with its service.
    pub(super) fn go_over(
        &mut self,
        mode: Mode,
        at: Duration,
        cut: &[ConnectionId],
        book: &mut impl FnMut(&str, &Evidence),
    ) {
        if self.mode != mode && mode != Mode::Between {
            self.window_began = at;
        }
        self.hooked.set(mode != Mode::Between, at);
        for ((service, _), cohort) in &mut self.cohorts {
            let book = &mut |evidence: &Evidence| book(service, evidence);
            match (self.mode, mode) {
                (Mode::Window, Mode::Between) => cohort.end(cut, book),
                (Mode::Window | Mode::Between, Mode::Whole) => cohort.end_last(book),
                (Mode::Whole, Mode::Window) => cohort.look_back(book),
                _ => {}
            }
        }
        if mode == Mode::Whole {
            self.cohorts.retain(|_, cohort| cohort.waits());
            self.servers.clear();
        }
        self.mode = mode;
    }

    /// While all are followed, what was seen stands for what still waits, from time to time. `book`
    /// as in [`go_over`](Self::go_over).
    pub(super) fn pay(&mut self, now: Duration, book: &mut impl FnMut(&str, &Evidence)) {
        if self.mode != Mode::Whole || now < self.window_began + LEAST_TIME {
            return;
        }
        self.window_began = now;
        for ((service, _), cohort) in &mut self.cohorts {
            if cohort.waits() && cohort.has_seen() {
                let book = &mut |evidence: &Evidence| book(service, evidence);
                cohort.settle(book);
                cohort.failed.settle(book);
                *cohort = Cohort::default();
            }
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.cohorts.len()
    }

    fn of(&mut self, service: &str, role: Role) -> &mut Cohort {
        self.cohorts.entry((service.to_owned(), role)).or_default()
    }
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
    fn follow_for_later(&mut self, connection: ConnectionId) {
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
        self.failed.clear();
    }

    /// What was seen while all was followed is what is known, if it is enough.
    fn look_back(&mut self, book: &mut impl FnMut(&Evidence)) {
        self.turns.settle(LEAST_BEFORE);
        match self.followed.len() >= LEAST_BEFORE {
            true => self.settle(book),
            false => self.forget(),
        }
    }

    /// Ends the last window: from now on all are followed. If no window had a connection, what
    /// follows will show more.
    fn end_last(&mut self, book: &mut impl FnMut(&Evidence)) {
        if !self.completed.waits() {
            self.end(&[], book);
            self.failed.settle(book);
        }
    }

    /// Whether handshakes have ended of those that were followed.
    const fn has_seen(&self) -> bool {
        self.completed.count() + self.failed.count() > 0
    }

    const fn waits(&self) -> bool {
        self.completed.waits() || self.failed.waits()
    }

    /// Ends a window. One in which nothing opened says nothing.
    fn end(&mut self, cut: &[ConnectionId], book: &mut impl FnMut(&Evidence)) {
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
        tracing::debug!(
            connections,
            completed = self.completed.count(),
            failed = self.failed.count(),
            "what was followed stands for others"
        );
        self.completed.end(connections, book);
        self.failed.end(connections, book);
    }

    fn keep(&mut self, connection: &Connection) {
        let Connection {
            bytes_received,
            bytes_sent,
            application_received,
            application_sent,
            ..
        } = *connection;
        if self.begins.len() >= MOST_ENDS {
            self.begins.pop_front();
        }
        self.begins.push_back(Begin {
            cipher: connection.cipher,
            resumption: connection.resumption,
            may_be_http2: connection.may_be_http2,
            received: bytes_received.saturating_sub(application_received),
            sent: bytes_sent.saturating_sub(application_sent),
        });
    }

    fn complete(&mut self, connection: &mut Connection) {
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
    fn stand_for_one(&mut self, book: &mut impl FnMut(&Evidence)) {
        self.completed.stand_for(1, book);
        self.failed.stand_for(1, book);
    }
}

#[cfg(test)]
mod tests;
