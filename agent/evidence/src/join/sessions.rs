//! Sessions that servers issued, to distinguish a refused one from one that a
//! client made up, and where it came from is known.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::time::Duration;

use super::bounded::Bounded;
use super::state::AFTER_EXIT;
use crate::hello::{Attempt, Facts, Giver, Origin, Token};
use tlsprof_common::{Pid, Role};

/// Ids and tickets that are remembered. OpenSSL's cache holds 20,480 by default.
const REMEMBERED: usize = 65_536;
/// Keys of tickets that are remembered.
const KEYS: usize = 4096;
/// Processes that are remembered for each key.
const HOLDERS: usize = 256;

/// By whom, and when.
#[derive(Clone, Copy, Debug)]
struct Issue {
    process: Pid,
    at: Duration,
}

/// Processes that issued or accepted something, and when they ended. The ends of all others
/// of the host would push them out.
#[derive(Debug)]
struct Givers(Bounded<Pid, Option<Duration>>);

impl Givers {
    fn note(&mut self, process: Pid) {
        if self.0.get(process).is_none() {
            self.0.insert(process, None);
        }
    }

    fn ended(&mut self, process: Pid, at: Duration) {
        if let Some(end) = self.0.get_mut(process) {
            *end = Some(at);
        }
    }

    /// Whether the process that had that number then has ended: the number may have come again since.
    fn has_ended(&self, process: Pid, then: Duration) -> bool {
        let end = self.0.get(process).copied().flatten();
        end.is_some_and(|end| then <= end + AFTER_EXIT)
    }
}

/// Hashes of session ids, tickets and names of their keys, with a key that is random for
/// each run and never leaves it: nothing else of them is kept.
#[derive(Debug)]
pub(super) struct Sessions {
    key: RandomState,
    issued: Bounded<u64, Issue>,
    /// Processes that gave or accepted a ticket with that key, and when they did last.
    holders: Bounded<u64, BTreeMap<Pid, Duration>>,
    givers: Givers,
}

impl Sessions {
    pub(super) fn new() -> Self {
        Self {
            key: RandomState::new(),
            issued: Bounded::new(REMEMBERED),
            holders: Bounded::new(KEYS),
            givers: Givers(Bounded::new(REMEMBERED)),
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
                self.hold(token, process, now);
            }
            facts.origin = origin;
        }
        for token in facts.issued_tokens() {
            let hash = self.hash(role, token.bytes);
            self.issued.insert(hash, Issue { process, at: now });
            if role == Role::Server {
                self.givers.note(process);
                self.hold(token, process, now);
            }
        }
        facts.forget_sessions(known);
    }

    pub(super) fn process_ended(&mut self, process: Pid, at: Duration) {
        self.givers.ended(process, at);
    }

    /// Both ends of a connection may be on this host: what a server gave, the client gave
    /// not.
    fn hash(&self, role: Role, bytes: impl Hash) -> u64 {
        self.key.hash_one((role, bytes))
    }

    fn hold(&mut self, token: Token<'_>, process: Pid, now: Duration) {
        let Some(name) = token.key else {
            return;
        };
        self.givers.note(process);
        let hash = self.hash(Role::Server, name);
        if self.holders.get(hash).is_none() {
            self.holders.insert(hash, BTreeMap::new());
        }
        let Some(holders) = self.holders.get_mut(hash) else {
            return;
        };
        if holders.len() >= HOLDERS && !holders.contains_key(&process) {
            let mut holding = holders.iter();
            let gone = holding.find(|(one, at)| self.givers.has_ended(**one, **at));
            let Some((&gone, _)) = gone else {
                return;
            };
            holders.remove(&gone);
        }
        holders.insert(process, now);
    }

    fn origin(&self, token: Token<'_>, process: Pid, now: Duration) -> Option<Origin> {
        let issue = self.issued.get(self.hash(Role::Server, token.bytes));
        let age = issue.map(|issue| now.saturating_sub(issue.at));
        let holders = token.key.map(|name| self.hash(Role::Server, name));
        let holders = holders.and_then(|hash| self.holders.get(hash));
        let has_ended = |process, at| self.givers.has_ended(process, at);
        // The last handshakes of a process come after its end.
        let is_same = |one, at| one == process && has_ended(one, at) == has_ended(one, now);
        let held_at = holders.and_then(|holders| holders.get(&process));
        let of = |giver, process| Origin {
            giver,
            process,
            age,
        };
        if held_at.is_some_and(|at| is_same(process, *at)) {
            return Some(of(Giver::Same, process));
        }
        let mut holding = holders.into_iter().flatten().map(|(one, at)| (*one, *at));
        let any = holding.clone().next();
        let holder = holding.find(|(one, at)| !has_ended(*one, *at)).or(any);
        let (giver, at) = issue.map(|issue| (issue.process, issue.at)).or(holder)?;
        let kind = match (is_same(giver, at), has_ended(giver, at)) {
            (true, _) => Giver::Same,
            (false, true) => Giver::Ended,
            (false, false) => Giver::Sibling,
        };
        Some(of(kind, giver))
    }
}
