//! What the handshakes that were followed say of those that were not. Pure.
//!
//! Where socket calls are seen in windows only, the connections that open in one are a cohort:
//! what handshakes they had is known. Connections are always counted. For one that was not
//! followed, a handshake of the service's last cohort is booked once more, in turn, and as many
//! of them as the cohort had for each connection: a connection without TLS has none. So counts
//! follow the connections, and mean times are those of the cohorts. Failures wait for as many
//! windows as show some: one says little of how many there were. Connections that still wait when all
//! are followed again are estimated from those that are followed then; of failures too these have to show
//! some, or to be as many as wait. Turns are given to connections that end: see [`turns`].

mod cohort;
mod fractions;
mod handshakes;
mod hooked;
mod known;
mod sample;
mod turns;

use std::collections::BTreeMap;
use std::time::Duration;

use tlsprof_common::{Carries, Connection, ConnectionId, Opening, Outcome, Owner, Role};
use tlsprof_evidence::{Evidence, Handshake};

use super::calls::Stage;
use cohort::{Cohort, MOST_BEFORE};
use hooked::Hooked;

/// While all are followed, what was seen in so long stands for what waits. Few of its handshakes
/// are still under way at its end.
const LEAST_TIME: Duration = Duration::from_secs(32);

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
            if cohort.may_pay() {
                cohort.pay(&mut |evidence: &Evidence| book(service, evidence));
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

#[cfg(test)]
mod tests;
