//! What stands for a session on the wire: ids and tickets, for comparison in memory.
//! None of it is ever shown.

use std::time::Duration;

use super::{Attempt, Choice, Facts, Offered};
use tlsprof_common::{Pid, Resumption};

/// Bytes at each end of a ticket that are kept.
const END: usize = 16;
/// The shortest ticket of the form that RFC 5077, 4 recommends, with a key's name at its
/// beginning: name, initialization vector and MAC. OpenSSL, GnuTLS and NSS make such.
const WITH_KEY_NAME: usize = 16 + 16 + 32;

/// A session ticket, as far as it tells it apart from others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ticket {
    /// First and last bytes; empty for no ticket.
    ends: Vec<u8>,
    /// It may begin with the name of its key.
    named: bool,
}

impl Ticket {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let ends = match (bytes.first_chunk::<END>(), bytes.last_chunk::<END>()) {
            (Some(first), Some(last)) if bytes.len() > 2 * END => [*first, *last].concat(),
            _ => bytes.to_vec(),
        };
        Self {
            ends,
            named: bytes.len() >= WITH_KEY_NAME,
        }
    }
}

/// What stands for a session, to be compared in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// Tells it apart from others: an id, or both ends of a ticket.
    pub bytes: &'a [u8],
    /// The name of the key that a ticket was encrypted with, if it has one.
    pub key: Option<&'a [u8]>,
}

impl<'a> Token<'a> {
    fn of_id(id: &'a [u8]) -> Option<Self> {
        (!id.is_empty()).then_some(Self {
            bytes: id,
            key: None,
        })
    }

    fn of_ticket(ticket: &'a Ticket) -> Option<Self> {
        let key = ticket.ends.get(..END).filter(|_| ticket.named);
        (!ticket.ends.is_empty()).then_some(Self {
            bytes: &ticket.ends,
            key,
        })
    }
}

/// Who gave the session that a client brings, seen from the process that it is
/// brought to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Giver {
    /// The same process; of a ticket, one with a key that this process has used.
    Same,
    /// Another process of the service.
    Sibling,
    /// A process that has ended.
    Ended,
    /// A process of another service.
    Stranger,
}

/// Where the session came from that a client brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Who gave it.
    pub giver: Giver,
    /// That process.
    pub process: Pid,
    /// How long ago, where that was seen: not in TLS 1.3, which encrypts tickets that
    /// are given.
    pub age: Option<Duration>,
}

impl Facts {
    /// The session id that the client sent and the server did not take up,
    /// where [`Facts::attempt`] cannot tell whether it stood for a session. It
    /// did if the server had issued it: see [`Facts::issued_session`]. To be
    /// compared in memory, never to be shown.
    pub fn refused_session(&self) -> Option<&[u8]> {
        let older = |choice: &Choice| !choice.version.is_13();
        let unclear = self.choice.as_ref().is_some_and(older)
            && self.attempt() != Attempt::Refused
            && self.resumption() == Resumption::None
            && self.offered() == Offered::SessionId
            && !self.seen.offered_session.is_empty();
        unclear.then_some(self.seen.offered_session.as_slice())
    }

    /// The session id that the server gave to a new session (up to TLS 1.2).
    /// To be compared in memory, never to be shown.
    pub fn issued_session(&self) -> Option<&[u8]> {
        let session = self.seen.issued_session.as_slice();
        (!session.is_empty()).then_some(session)
    }

    /// What the client brought to take up a session, the means that servers prefer.
    pub fn offered_token(&self) -> Option<Token<'_>> {
        match self.offered() {
            Offered::Nothing => None,
            Offered::SessionId => Token::of_id(&self.seen.offered_session),
            Offered::Ticket | Offered::Psk => Token::of_ticket(&self.seen.offered_ticket),
        }
    }

    /// What the server gave for a new session, up to TLS 1.2.
    pub fn issued_tokens(&self) -> impl Iterator<Item = Token<'_>> {
        let id = Token::of_id(&self.seen.issued_session);
        id.into_iter()
            .chain(Token::of_ticket(&self.seen.issued_ticket))
    }

    /// Drops session ids and tickets. `refused` says what the one of
    /// [`Facts::refused_session`] stood for: a session, or nothing that is known.
    pub fn forget_sessions(&mut self, refused: bool) {
        self.seen.refused_known_session = refused;
        self.seen.offered_session = Vec::new();
        self.seen.issued_session = Vec::new();
        self.seen.offered_ticket = Ticket::default();
        self.seen.issued_ticket = Ticket::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_known_by_both_ends_and_its_key_by_the_first() {
        let bytes: Vec<u8> = (0..200).collect();
        let ticket = Ticket::of(&bytes);
        let token = Token::of_ticket(&ticket);
        assert_eq!(token.map(|token| token.bytes.len()), Some(32));
        assert_eq!(token.and_then(|token| token.key), bytes.get(..16));
    }

    #[test]
    fn a_session_id_in_a_ticket_has_no_key() {
        let id: Vec<u8> = (0..32).collect();
        let ticket = Ticket::of(&id);
        let token = Token::of_ticket(&ticket);
        assert_eq!(
            token.map(|token| (token.bytes, token.key)),
            Some((&*id, None))
        );
        assert_eq!(Token::of_ticket(&Ticket::of(&[])), None);
    }
}
