//! Makes one record of what several sources say of one handshake. Pure.
//!
//! A TLS handshake may be seen by probes in the TLS library, by socket calls, or
//! by both, and the hellos of its connection come as bytes. The [`Joiner`] takes
//! all evidence in the order in which it happened and gives back what is to be
//! booked: each handshake once, with what its hellos say.
//!
//! **The rules.**
//!
//! 1. A library handshake that names its connection takes what the hellos there
//!    say, and is booked at once. If it did not complete and the hellos are not
//!    over, it waits for an alert, which some programs send after the library
//!    gave up: until the exchange or the connection ends, at most [`HOLD`].
//! 2. A socket handshake of that connection, before or after, is the same
//!    handshake: it is compared, not booked. Unless data passes through memory, most are not
//!    timed on their socket (`bpf/include/watch.h`), and so not compared either.
//! 3. A socket handshake of a process without probes is booked at once, and so is any
//!    while no library is probed. With probes it waits for its twin, at most [`HOLD`];
//!    even after the end of the connection, since a library may hear of that later.
//! 4. A library handshake that names no connection waits as long, if its process
//!    showed any socket evidence. The kernel names it where a socket call is made
//!    inside the library's, and where data passes through memory, if the thread
//!    that does TLS is the one that reads and writes (`bpf/include/object.h`); what
//!    is left are servers that hand the work over to other threads, and threads
//!    that slept in between. At the end of a wait the two are paired: same process,
//!    same role, under way at the same time, and the socket's is not one that is
//!    named. Of several those that contradict each other least: in what was
//!    negotiated, in whether they completed, in when they began or ended. Where
//!    handshakes run in parallel, two that are alike may swap their hellos, and of
//!    those that are broken off some may find another's twin, and one be counted
//!    twice.
//! 5. A connection has one handshake in clear: a further one is a renegotiation, or
//!    TLS inside TLS, and names no connection by rule 4.
//! 6. A library handshake that comes after its twin was booked alone (objects
//!    that a garbage collector frees) is dropped: for a minute, by connection;
//!    where it names none, by time, if neither completed.
//! 7. A library handshake that was abandoned, on a connection where the socket's completed,
//!    ended while its probes were being placed or taken out, as when a server is restarted
//!    that alone maps the library. The socket's is booked.
//!
//! **Losses.** Bytes of hellos that are missing end an exchange: what was heard
//! before stays valid. What a peer says that cannot be understood is no loss. A lost
//! library record leaves the socket's to be booked alone, with a CPU time that is a lower
//! bound if it was not timed; a lost socket record leaves the library's. What was evicted
//! for want of room loses the facts, never the handshake; a twin that comes after an
//! eviction may be counted twice, which [`Loss::HelloTableFull`] tells.
//!
//! **Time** is that of the evidence. [`Joiner::advance`] may be called only when
//! all evidence up to then was taken.
//!
//! **Finishing and answering.** Where the peer's last handshake bytes came with
//! application data, `finish_and_answer` cannot be divided. The mean last part of
//! handshakes of the same process, role, version and resumption without such data
//! is taken for it, where 20 of them are known, and never more than there is. The
//! error is the spread of that mean, some tens of µs. Where fewer are known
//! nothing is added, and the figure lacks the work on the last flight: in TLS 1.3
//! the derivation of a few keys and the making of tickets, in a resumed TLS 1.2
//! handshake next to nothing.

mod agree;
mod booking;
mod bounded;
mod connections;
mod dialogue;
mod process;
mod sessions;
mod state;
#[cfg(test)]
mod tests;
mod twins;
mod waits;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use std::vec::Drain;

use super::Evidence;
use bounded::{Bounded, NumberMap};
use dialogue::Dialogue;
use process::{Number, Process};
use sessions::Sessions;
use state::{AFTER_EXIT, Held, Settled};
use tlsprof_common::{ConnectionId, Loss, Pid, ProcessEvent};

/// How long a handshake waits for its twin.
pub(crate) const HOLD: Duration = Duration::from_secs(1);

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections whose handshake is not booked yet.
    pub(crate) dialogues: usize,
    /// Memory of them, in bytes.
    pub(crate) dialogue_bytes: usize,
    /// Connections whose cipher is remembered until they end.
    pub settled: usize,
    /// Processes.
    pub processes: usize,
    /// Handshakes that wait for their twin.
    pub(crate) held: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            dialogues: 65_536,
            dialogue_bytes: 64 << 20,
            settled: 262_144,
            processes: 16_384,
            held: 65_536,
        }
    }
}

/// Puts the evidence on handshakes together.
#[derive(Debug)]
pub struct Joiner {
    limits: Limits,
    now: Duration,
    dialogues: Bounded<ConnectionId, Dialogue>,
    /// What the dialogues stand for, in bytes.
    charged: usize,
    settled: Bounded<ConnectionId, Settled>,
    processes: Bounded<Pid, Process>,
    exited: VecDeque<(Duration, Pid)>,
    held: BTreeMap<Number, Held>,
    arrivals: Number,
    /// Socket handshakes wait for their twins.
    expects_libraries: bool,
    /// Socket handshakes and unfinished library handshakes that are held, by
    /// connection.
    sockets: NumberMap<ConnectionId, Number>,
    unfinished: NumberMap<ConnectionId, Number>,
    sessions: Sessions,
    losses: BTreeMap<Loss, u64>,
    ready: Vec<Evidence>,
}

impl Default for Joiner {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Joiner {
    /// One that has seen nothing.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            now: Duration::ZERO,
            dialogues: Bounded::new(limits.dialogues),
            charged: 0,
            settled: Bounded::new(limits.settled),
            processes: Bounded::new(limits.processes),
            exited: VecDeque::new(),
            held: BTreeMap::new(),
            arrivals: 0,
            expects_libraries: true,
            sockets: NumberMap::default(),
            unfinished: NumberMap::default(),
            sessions: Sessions::new(),
            losses: BTreeMap::new(),
            ready: Vec::new(),
        }
    }

    /// Takes evidence of the time `at` (monotonic clock), and gives what is to be
    /// booked now, in order. `probed` says whether a process has a TLS library
    /// with probes.
    pub fn take(
        &mut self,
        evidence: Evidence,
        at: Duration,
        probed: impl Fn(Pid) -> bool,
    ) -> Drain<'_, Evidence> {
        self.expire(at);
        match evidence {
            Evidence::Hello(chunk) => self.hear(&chunk, probed),
            Evidence::Handshake(handshake) => self.handshake(handshake, at, probed),
            Evidence::Closed(connection) => self.closed(connection),
            other => {
                if let Evidence::Process(event) = &other {
                    self.process_event(event);
                }
                self.ready.push(other);
            }
        }
        self.ready.drain(..)
    }

    fn process_event(&mut self, event: &ProcessEvent) {
        if let ProcessEvent::Exit { process, .. } = event {
            self.sessions.process_ended(*process, self.now);
            self.exited.push_back((self.now, *process));
        }
    }

    /// Says that all evidence up to `now` was taken; gives what waited too long.
    pub fn advance(&mut self, now: Duration) -> Drain<'_, Evidence> {
        self.expire(now);
        self.ready.drain(..)
    }

    /// Ends all waits: no more evidence of what waits is expected.
    pub fn flush(&mut self) -> Drain<'_, Evidence> {
        while let Some((&first, _)) = self.held.first_key_value() {
            self.resolve(first);
        }
        self.ready.drain(..)
    }

    /// How often something of a handshake was not learned for this reason.
    pub fn lost(&self, loss: Loss) -> u64 {
        self.losses.get(&loss).copied().unwrap_or_default()
    }

    fn lose(&mut self, loss: Loss) {
        *self.losses.entry(loss).or_default() += 1;
    }

    fn expire(&mut self, at: Duration) {
        self.now = self.now.max(at);
        while let Some((&first, held)) = self.held.first_key_value()
            && held.since + HOLD <= self.now
        {
            self.resolve(first);
        }
        while let Some(&(since, process)) = self.exited.front()
            && since + AFTER_EXIT <= self.now
        {
            self.exited.pop_front();
            // It may have issued its first session in a handshake that was held until now.
            self.sessions.process_ended(process, since);
            let gone = |process: &Process| !process.is_waiting();
            if self.processes.get(process).is_some_and(gone) {
                self.processes.remove(process);
            }
        }
    }

    /// Says whether libraries are probed, all evidence of before being taken: if not, no
    /// handshake waits for a twin any more.
    pub fn expect_libraries(&mut self, expected: bool) {
        self.expects_libraries = expected;
    }

    fn process(&mut self, pid: Pid, probed: impl Fn(Pid) -> bool) -> Option<&mut Process> {
        if self.processes.get(pid).is_none() {
            self.processes.insert(pid, Process::default());
        }
        let process = self.processes.get_mut(pid)?;
        // Once is enough: a process that is ending is known no more.
        process.probed = process.probed || probed(pid);
        Some(process)
    }
}
