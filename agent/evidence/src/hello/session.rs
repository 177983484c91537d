//! The sessions that a connection took up, or gave.

use super::choice::Choice;
use super::facts::{Attempt, Facts, Offered};
use super::ticket::{Ticket, Token};
use tlsprof_common::Resumption;

impl Facts {
    /// The session id that the client sent and the server did not take up,
    /// where [`Facts::attempt`] cannot decide whether it stood for a session. It
    /// did if the server had issued it: see [`Facts::issued_session`]. To be
    /// compared in memory, never to be shown.
    pub(crate) fn refused_session(&self) -> Option<&[u8]> {
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
    #[cfg(test)]
    pub(crate) fn issued_session(&self) -> Option<&[u8]> {
        let session = self.seen.issued_session.as_slice();
        (!session.is_empty()).then_some(session)
    }

    /// What the client brought to take up a session, the means that servers prefer.
    pub(crate) fn offered_token(&self) -> Option<Token<'_>> {
        match self.offered() {
            Offered::Nothing => None,
            Offered::SessionId => Token::of_id(&self.seen.offered_session),
            Offered::Ticket | Offered::Psk => Token::of_ticket(&self.seen.offered_ticket),
        }
    }

    /// What the server gave for a new session, up to TLS 1.2.
    pub(crate) fn issued_tokens(&self) -> impl Iterator<Item = Token<'_>> {
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
