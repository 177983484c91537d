//! What stands for a session on the wire: ids and tickets, for comparison in memory.
//! None of it is ever shown.

use std::time::Duration;

use tlsprof_common::Pid;

/// Bytes at each end of a ticket that are kept.
const END: usize = 16;

/// The shortest ticket of the form that RFC 5077, 4 recommends, with a key's name at its
/// beginning: name, initialization vector and MAC. OpenSSL, GnuTLS and NSS make such.
const WITH_KEY_NAME: usize = 16 + 16 + 32;

/// The part of a session ticket that distinguishes it from others.
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
    pub(super) fn of_id(id: &'a [u8]) -> Option<Self> {
        (!id.is_empty()).then_some(Self {
            bytes: id,
            key: None,
        })
    }

    pub(super) fn of_ticket(ticket: &'a Ticket) -> Option<Self> {
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
