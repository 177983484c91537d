//! Session ids that servers issued (up to TLS 1.2), so that one which is refused
//! is told from one that a client made up.

use std::hash::{BuildHasher, RandomState};

use super::bounded::Bounded;
use crate::evidence::hello::Facts;

/// Ids that are remembered. OpenSSL's cache holds 20,480 by default.
const REMEMBERED: usize = 65_536;

/// Hashes of session ids, with a key that is random for each run and never
/// leaves it: no id is kept.
#[derive(Debug)]
pub(super) struct Sessions {
    key: RandomState,
    issued: Bounded<u64, ()>,
}

impl Sessions {
    pub(super) fn new() -> Self {
        Self {
            key: RandomState::new(),
            issued: Bounded::new(REMEMBERED),
        }
    }

    /// Settles whether a session id that was not taken up stood for a session,
    /// remembers the one that was issued, and takes both out of the facts.
    pub(super) fn judge(&mut self, facts: &mut Facts) {
        let known = facts
            .refused_session()
            .is_some_and(|id| self.issued.get(self.key.hash_one(id)).is_some());
        if let Some(id) = facts.issued_session() {
            self.issued.insert(self.key.hash_one(id), ());
        }
        facts.forget_sessions(known);
    }
}
