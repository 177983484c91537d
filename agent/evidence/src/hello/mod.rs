//! What a TLS connection says in clear: its first bytes, both ways, as facts.
//!
//! Pure. The kernel side copies the first bytes of each direction out, in
//! chunks of any size; an [`Exchange`] takes them and says what was offered,
//! what was chosen, and when it needs no more.
//!
//! `opening` says how it began, `records` puts records and handshake messages
//! together, `client` and `server` read the messages, `facts` draws
//! the conclusions. TLS over TCP only: no DTLS, no SSL 2.0.

mod chain;
mod choice;
mod client;
mod codes;
mod cursor;
mod extensions;
mod facts;
mod late;
mod offer;
mod opening;
mod records;
mod server;
mod session;
mod ticket;
mod types;

#[cfg(any(test, feature = "sample"))]
pub mod fixture;
#[cfg(test)]
mod tests;

pub use chain::Chain;
pub use choice::{Choice, KeyExchange, Signature};
pub(crate) use choice::{ecdsa_key, rsa_key};
pub use codes::{Alert, AlertLevel, CipherSuite, Group, SignatureScheme, Version};
pub use facts::{Attempt, Facts, Offered};
pub use late::Late;
pub use offer::{LISTED, Offer};
pub use opening::{Opening, Upgrade};
pub use ticket::{Giver, Origin, Token};
pub use types::{Direction, GaveUp, TLS_LIMIT};

use opening::Beginning;
use records::{Item, Records};

/// How far an exchange is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// This is, or may become, a TLS handshake.
    NeedMore,
    /// All that travels in clear was seen.
    Complete,
    /// Another protocol.
    NotTls,
    /// It could not be followed to its end.
    GaveUp(GaveUp),
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Side {
    beginning: Beginning,
    records: Records,
    /// Bytes of TLS taken in.
    taken: usize,
    /// The rest is encrypted or of no use.
    done: bool,
}

/// The first bytes of one TCP connection, both ways.
///
/// Its memory is bounded by [`TLS_LIMIT`] for each direction, whatever the
/// peers send; buffers are freed as soon as the state is final.
#[derive(Debug)]
pub struct Exchange {
    state: State,
    client: Side,
    server: Side,
    facts: Facts,
}

impl Default for Exchange {
    fn default() -> Self {
        Self::new()
    }
}

impl Exchange {
    /// A connection of which nothing has been seen.
    pub fn new() -> Self {
        Self::after(Opening::default())
    }

    /// One of which this came before TLS.
    pub(crate) fn after(opening: Opening) -> Self {
        let facts = Facts {
            opening,
            ..Facts::default()
        };
        Self {
            state: State::NeedMore,
            client: Side::default(),
            server: Side::default(),
            facts,
        }
    }

    /// Takes in the next bytes of one direction, and says how far it is. Chunks of
    /// one direction come in order; of two directions, a question comes before its
    /// answer. An empty chunk changes nothing.
    pub fn received(&mut self, direction: Direction, bytes: &[u8]) -> State {
        if self.state == State::NeedMore && !bytes.is_empty() {
            let state = self.advance(direction, bytes);
            self.enter(state);
        }
        self.state
    }

    /// Bytes of one direction were lost: what follows cannot be understood.
    pub(crate) fn missed(&mut self, direction: Direction) {
        if self.state == State::NeedMore && !self.side(direction).done {
            self.enter(State::GaveUp(GaveUp::Gap));
        }
    }

    /// How far it is, without new bytes.
    pub const fn state(&self) -> State {
        self.state
    }

    /// What is known so far, whatever the state: None before the first hello or
    /// alert.
    pub fn facts(&self) -> Option<&Facts> {
        let facts = &self.facts;
        (facts.offer.is_some() || facts.choice.is_some() || !facts.alerts.is_empty())
            .then_some(facts)
    }

    /// As [`Exchange::facts`], taken out.
    pub fn into_facts(self) -> Option<Box<Facts>> {
        self.facts().is_some().then(|| Box::new(self.facts))
    }

    fn side(&mut self, direction: Direction) -> &mut Side {
        match direction {
            Direction::FromClient => &mut self.client,
            Direction::FromServer => &mut self.server,
        }
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        if state != State::NeedMore {
            self.client = Side::default();
            self.server = Side::default();
        }
    }

    fn advance(&mut self, direction: Direction, bytes: &[u8]) -> State {
        let read = self.side(direction).beginning.read(direction, bytes);
        let result = match read {
            opening::Read::More => return State::NeedMore,
            opening::Read::NotTls => return State::NotTls,
            opening::Read::Underway => return State::GaveUp(GaveUp::Underway),
            opening::Read::Began(held) => self.take(direction, &held),
            opening::Read::Tls => self.take(direction, bytes),
        };
        match result {
            Err(reason) => State::GaveUp(reason),
            Ok(()) if self.is_complete() => State::Complete,
            Ok(()) => State::NeedMore,
        }
    }

    fn take(&mut self, direction: Direction, bytes: &[u8]) -> Result<(), GaveUp> {
        let side = self.side(direction);
        let room = TLS_LIMIT.saturating_sub(side.taken);
        side.taken = side.taken.saturating_add(bytes.len());
        let mut rest = bytes.get(..room).unwrap_or(bytes);
        while !self.is_complete() && !self.side(direction).done {
            match self.side(direction).records.next(&mut rest)? {
                Some(item) => self.note(direction, item)?,
                None if self.side(direction).taken < TLS_LIMIT => break,
                None => return Err(GaveUp::TooLong),
            }
        }
        Ok(())
    }

    fn note(&mut self, direction: Direction, item: Item) -> Result<(), GaveUp> {
        let facts = &mut self.facts;
        match (item, direction) {
            (Item::Message(message), Direction::FromClient) => client::note(facts, &message)?,
            (Item::Message(message), Direction::FromServer) => server::note(facts, &message)?,
            (Item::Certificates(number), Direction::FromServer) => {
                if let Some(chain) = &mut facts.server_chain {
                    chain.certificates = Some(number);
                }
            }
            (Item::Certificates(_), Direction::FromClient) => {}
            (Item::Alert(level, alert), _) => facts.note_alert(direction, level, alert),
            // In TLS 1.3 a compatibility message without meaning; after it the
            // client has nothing more to say in clear but a second hello.
            (Item::ChangeCipherSpec, Direction::FromClient) => {
                facts.change_cipher(direction);
                self.client.done = true;
            }
            (Item::ChangeCipherSpec, Direction::FromServer) => {
                self.server.done = facts.change_cipher(direction);
            }
            (Item::ApplicationData, _) => self.side(direction).done = true,
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.facts.ended_in_clear() || (self.client.done && self.server.done)
    }
}
