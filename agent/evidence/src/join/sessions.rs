//! Sessions that servers issued, to distinguish a refused one from one that a
//! client made up, and where it came from is known.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hash, RandomState};
use std::time::Duration;

use super::bounded::Bounded;
use crate::hello::{Attempt, Facts, Giver, Origin, Token};
use tlsprof_common::{Pid, Role};

/// Ids and tickets that are remembered. OpenSSL's cache holds 20,480 by default.
const REMEMBERED: usize = 65_536;
/// Keys of tickets that are remembered.
const KEYS: usize = 4096;
/// Processes that are remembered for each key, and of those that have ended.
const HOLDERS: usize = 256;
const ENDED: usize = 4096;

/// By whom, and when.
#[derive(Clone, Copy, Debug)]
struct Issue {
    process: Pid,
    at: Duration,
}

/// Hashes of session ids, tickets and names of their keys, with a key that is random for
/// each run and never leaves it: nothing else of them is kept.
#[derive(Debug)]
pub(super) struct Sessions {
    key: RandomState,
    issued: Bounded<u64, Issue>,
    /// Processes that gave or accepted a ticket with that key.
    holders: Bounded<u64, BTreeSet<Pid>>,
    ended: Bounded<Pid, ()>,
}

impl Sessions {
    pub(super) fn new() -> Self {
        Self {
            key: RandomState::new(),
            issued: Bounded::new(REMEMBERED),
            holders: Bounded::new(KEYS),
            ended: Bounded::new(ENDED),
        }
    }

    /// Settles whether a session id that was not taken up stood for a session, and where
    /// what was brought to a server came from; remembers what was issued and accepted, and
    /// takes all of it out of the facts.
    pub(super) fn judge(&mut self, facts: &mut Facts, role: Role, process: Pid, now: Duration) {
        let refused = facts.refused_session();
        let known = refused.is_some_and(|id| self.issued.get(self.hash(role, id)).is_some());
        if role == Role::Server
            && let Some(token) = facts.offered_token()
        {
            let origin = self.origin(token, process, now);
            if facts.attempt() == Attempt::Accepted {
                self.hold(token, process);
            }
            facts.origin = origin;
        }
        for token in facts.issued_tokens() {
            let hash = self.hash(role, token.bytes);
            self.issued.insert(hash, Issue { process, at: now });
            if role == Role::Server {
                self.hold(token, process);
            }
        }
        facts.forget_sessions(known);
    }

    /// A process has ended; its number may come again.
    pub(super) fn process_ended(&mut self, process: Pid) {
        self.ended.insert(process, ());
    }

    pub(super) fn process_began(&mut self, process: Pid) {
        self.ended.remove(process);
    }

    /// Both ends of a connection may be on this host: what a server gave, the client gave
    /// not.
    fn hash(&self, role: Role, bytes: impl Hash) -> u64 {
        self.key.hash_one((role, bytes))
    }

    fn hold(&mut self, token: Token<'_>, process: Pid) {
        let Some(name) = token.key else {
            return;
        };
        let hash = self.hash(Role::Server, name);
        if self.holders.get(hash).is_none() {
            self.holders.insert(hash, BTreeSet::new());
        }
        if let Some(holders) = self.holders.get_mut(hash)
            && holders.len() < HOLDERS
        {
            holders.insert(process);
        }
    }

    fn origin(&self, token: Token<'_>, process: Pid, now: Duration) -> Option<Origin> {
        let issue = self.issued.get(self.hash(Role::Server, token.bytes));
        let age = issue.map(|issue| now.saturating_sub(issue.at));
        let holders = token.key.map(|name| self.hash(Role::Server, name));
        let holders = holders.and_then(|hash| self.holders.get(hash));
        let of = |giver, process| Origin {
            giver,
            process,
            age,
        };
        if holders.is_some_and(|holders| holders.contains(&process)) {
            return Some(of(Giver::Same, process));
        }
        let alive = |holder: &&Pid| self.ended.get(**holder).is_none();
        let holders = holders.into_iter().flatten();
        let holder = holders.clone().find(alive).or(holders.clone().next());
        let giver = issue.map(|issue| issue.process).or(holder.copied())?;
        Some(match giver {
            giver if giver == process => of(Giver::Same, giver),
            giver if self.ended.get(giver).is_some() => of(Giver::Ended, giver),
            giver => of(Giver::Sibling, giver),
        })
    }
}
