//! What one connection said in clear, until its handshake is booked.

use crate::Chunk;
use crate::hello::{Direction, Exchange, Facts, GaveUp, Late, State};

/// What a dialogue takes beside the bytes that it was fed, roughly.
const OVERHEAD: usize = 1024;
/// The most that facts take, whatever the hellos held: a few lists of 200 numbers
/// and one of 200 names.
const FACTS: usize = 6 * 1024;

/// The hellos of one connection.
#[derive(Debug)]
pub(super) struct Dialogue {
    /// Present until all that travels in clear was seen.
    exchange: Option<Box<Exchange>>,
    facts: Option<Box<Facts>>,
    late: Late,
    /// Where the next bytes should stand, from the client and from the server.
    next: [u32; 2],
    fed: usize,
}

impl Dialogue {
    /// Of the connection of this chunk, its first.
    pub(super) fn new(chunk: &Chunk) -> Self {
        Self {
            exchange: Some(Box::new(Exchange::after(chunk.opening))),
            facts: None,
            late: Late::default(),
            next: [0; 2],
            fed: 0,
        }
    }

    /// Bytes of memory that it stands for.
    pub(super) fn charge(&self) -> usize {
        match (&self.exchange, &self.facts) {
            (Some(_), _) => OVERHEAD + self.fed,
            (None, Some(_)) => OVERHEAD + self.fed.min(FACTS),
            (None, None) => 0,
        }
    }

    /// Takes in a chunk; says why the exchange was given up, where it was.
    pub(super) fn hear(&mut self, chunk: &Chunk) -> Option<GaveUp> {
        let Some(exchange) = self.exchange.as_mut() else {
            if let Some(facts) = &mut self.facts {
                self.late.hear(facts, chunk.direction, &chunk.bytes);
            }
            return None;
        };
        let from_server = usize::from(chunk.direction == Direction::FromServer);
        let next = self.next.get_mut(from_server)?;
        // Bytes that were looked at before (MSG_PEEK) come twice.
        let known = usize::try_from(next.saturating_sub(chunk.offset)).unwrap_or(usize::MAX);
        let new = chunk.bytes.get(known..).unwrap_or_default();
        if chunk.offset > *next {
            exchange.missed(chunk.direction);
        }
        let length = u32::try_from(chunk.bytes.len()).unwrap_or(u32::MAX);
        *next = (*next).max(chunk.offset.saturating_add(length));
        self.fed += new.len();
        let state = exchange.received(chunk.direction, new);
        if state != State::NeedMore {
            self.facts = self.exchange.take().and_then(|it| it.into_facts());
        }
        match state {
            State::GaveUp(reason) => Some(reason),
            _ => None,
        }
    }

    /// Whether more may be heard.
    pub(super) const fn is_underway(&self) -> bool {
        self.exchange.is_some()
    }

    /// What is known so far.
    pub(super) fn facts(&self) -> Option<&Facts> {
        let heard = self.exchange.as_ref().and_then(|it| it.facts());
        heard.or(self.facts.as_deref())
    }

    /// Ends it and hands the facts over.
    pub(super) fn into_facts(self) -> Option<Box<Facts>> {
        let heard = self.exchange.and_then(|it| it.into_facts());
        heard.or(self.facts)
    }
}
