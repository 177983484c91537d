//! How the hellos of a connection and the handshake on it go together.

use crate::Handshake;
use crate::hello::Facts;
use tlsprof_common::Resumption;

impl Facts {
    /// Fills in what another source could not see. Where that source said
    /// something else of version, cipher, group or resumption, the wire wins.
    pub fn apply_to(&self, handshake: &mut Handshake) {
        settle(&mut handshake.version, self.version());
        settle(&mut handshake.cipher, self.cipher());
        settle(&mut handshake.group, self.key_exchange().label());
        settle_resumption(&mut handshake.resumption, self.resumption());
        if handshake.signature == "unknown" {
            handshake.signature = self.signature(handshake.role);
        }
        handshake.client_authenticates |= self.client_signature.is_some();
    }

    /// Whether what another source saw of a handshake cannot be of these hellos: it
    /// is full where they are resumed, or of another group.
    pub(crate) fn contradicts(&self, handshake: &Handshake) -> bool {
        let mut group = handshake.group;
        let mut resumption = handshake.resumption;
        let groups_differ = settle(&mut group, self.key_exchange().label());
        groups_differ || settle_resumption(&mut resumption, self.resumption())
    }
}

/// Puts what the wire says in place of what was known; true if the two differ.
fn settle(known: &mut &'static str, wire: &'static str) -> bool {
    let vague = |label| matches!(label, "unknown" | "other");
    match (vague(known), vague(wire)) {
        (_, false) => {
            let before = std::mem::replace(known, wire);
            !vague(before) && before != wire
        }
        (true, true) if *known == "unknown" => {
            *known = wire;
            false
        }
        (_, true) => false,
    }
}

/// As [`settle`]; [`Resumption::Abbreviated`] is vague about the means only.
fn settle_resumption(known: &mut Resumption, wire: Resumption) -> bool {
    use Resumption::{Abbreviated, None, Psk, SessionId, Ticket, Unknown};
    match (*known, wire) {
        (_, Unknown) | (SessionId | Ticket | Psk, Abbreviated) => false,
        (before, wire) => {
            *known = wire;
            match (before, wire) {
                (Unknown, _) => false,
                (Abbreviated, wire) => wire == None,
                (before, wire) => before != wire,
            }
        }
    }
}
