//! Handshakes that wait for their twin, and how twins find each other.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Joiner;
use super::dialogue::Dialogue;
use super::process::{Alone, Number, Span};
use super::state::{Held, Unpaired, Why};
use crate::Handshake;
use tlsprof_common::{Loss, Source};

/// Handshakes of each source among which a twin is looked for. Those before it
/// are gone, so that it is among the first.
const CANDIDATES: usize = 16;

/// How little two handshakes look alike: what counts most comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Likeness {
    /// What the library did is not what the hellos say.
    contradicted: bool,
    /// One completed, the other did not.
    other_end: bool,
    apart: Duration,
}

impl Joiner {
    pub(super) fn hold(&mut self, handshake: Box<Handshake>, span: Span, why: Why) -> Number {
        if self.held.len() >= self.limits.held
            && let Some((&first, _)) = self.held.first_key_value()
        {
            self.lose(Loss::HandshakeQueueFull);
            self.resolve(first);
        }
        self.arrivals += 1;
        let held = Held {
            handshake,
            span,
            since: self.now,
            closed: false,
            why,
        };
        self.held.insert(self.arrivals, held);
        self.arrivals
    }

    /// Takes a held handshake out of all queues.
    pub(super) fn release(&mut self, number: Number) -> Option<Held> {
        let held = self.held.remove(&number)?;
        let key = (held.handshake.role, number);
        if let Some(process) = self.processes.get_mut(held.handshake.process) {
            process.sockets.remove(&key);
            process.libraries.remove(&key);
        }
        if let Some(id) = &held.handshake.connection {
            for index in [&mut self.sockets, &mut self.unfinished] {
                if index.get(id) == Some(&number) {
                    index.remove(id);
                }
            }
        }
        Some(held)
    }

    /// Ends the wait of a handshake.
    pub(super) fn resolve(&mut self, number: Number) {
        let twin = self.twin_of(number);
        let Some(held) = self.release(number) else {
            return;
        };
        let twin = twin.and_then(|twin| self.release(twin));
        match (held.why, held.handshake.source, twin) {
            (Why::Alerts { compared }, _, _) => {
                let unpaired = (!compared).then(|| Unpaired::of(&held.handshake));
                if let Some(id) = held.handshake.connection {
                    self.book_on(id, held.handshake, held.closed, unpaired);
                }
            }
            (Why::Twin, Source::Socket, Some(twin)) => self.pair(twin, held),
            (Why::Twin, Source::Library, Some(twin)) => self.pair(held, twin),
            (Why::Twin, Source::Socket, None) => self.book_alone(held),
            (Why::Twin, Source::Library, None) => {
                // Its twin may have been booked while this one waited.
                if !self.was_booked(&held.handshake, held.span) {
                    self.book(held.handshake, None);
                }
            }
        }
    }

    /// The held handshake of the other source that is most likely the same. All
    /// that are near are paired for that, the most alike first, so that none takes
    /// another's twin.
    fn twin_of(&self, number: Number) -> Option<Number> {
        let held = self
            .held
            .get(&number)
            .filter(|held| held.why == Why::Twin)?;
        let process = self.processes.get(held.handshake.process)?;
        let range = (held.handshake.role, 0)..=(held.handshake.role, Number::MAX);
        let mut pairs = Vec::new();
        for (_, socket) in process.sockets.range(range.clone()).take(CANDIDATES) {
            for (_, library) in process.libraries.range(range.clone()).take(CANDIDATES) {
                let alike = self.likeness(*socket, *library);
                pairs.extend(alike.map(|alike| (alike, *socket, *library)));
            }
        }
        pairs.sort_unstable();
        let mut taken = BTreeSet::new();
        for (_, socket, library) in pairs {
            if taken.contains(&socket) || taken.contains(&library) {
                continue;
            }
            if socket == number || library == number {
                return Some(if socket == number { library } else { socket });
            }
            taken.extend([socket, library]);
        }
        None
    }

    /// How little two held handshakes look alike; None if they cannot be the same.
    fn likeness(&self, socket: Number, library: Number) -> Option<Likeness> {
        let (socket, library) = (self.held.get(&socket)?, self.held.get(&library)?);
        let id = socket.handshake.connection;
        let facts = id.and_then(|id| self.dialogues.get(id)?.facts());
        let likeness = Likeness {
            contradicted: facts.is_some_and(|facts| facts.contradicts(&library.handshake)),
            other_end: socket.has_completed() != library.has_completed(),
            apart: socket.span.apart(library.span),
        };
        socket.span.overlaps(library.span).then_some(likeness)
    }

    /// Two sources saw one handshake, and only the socket knows where.
    fn pair(&mut self, library: Held, socket: Held) {
        let unpaired = Unpaired::of(&library.handshake);
        let Some(id) = socket.handshake.connection else {
            self.compare(unpaired, socket.handshake, None);
            return self.book(library.handshake, None);
        };
        let dialogue = self.dialogues.get(id);
        let known = dialogue.and_then(Dialogue::facts);
        let known = known.map(|facts| (facts.version(), facts.resumption()));
        self.compare(unpaired, socket.handshake, known);
        let mut handshake = library.handshake;
        handshake.connection = Some(id);
        self.book_on(id, handshake, socket.closed, None);
    }

    fn book_alone(&mut self, socket: Held) {
        let alone = Alone {
            connection: socket.handshake.connection,
            named: socket.handshake.named,
            role: socket.handshake.role,
            span: socket.span,
            completed: socket.has_completed(),
        };
        if let Some(process) = self.processes.get_mut(socket.handshake.process) {
            process.remember(alone);
        }
        match socket.handshake.connection {
            Some(id) => self.book_on(id, socket.handshake, socket.closed, None),
            None => self.book(socket.handshake, None),
        }
    }
}
