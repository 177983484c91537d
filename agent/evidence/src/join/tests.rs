//! One handshake is one record, whoever saw it, and memory is bounded.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

mod any_order;
mod hellos;
mod memory;
mod rules;
mod sessions;
mod untimed;

use std::time::Duration;

use super::{Joiner, Limits, Loss};
use crate::hello::{Direction, Opening, fixture};
use crate::{Chunk, Comparison, Evidence, Handshake, sample};
use tlsprof_common::{
    Carries, Connection, ConnectionId, Outcome, Pid, ProcessEvent, Resumption, Role, Source,
};

/// A process with a probed library, and one without.
const PROBED: Pid = 1;
const BARE: Pid = 2;

fn micros(n: u64) -> Duration {
    Duration::from_micros(n)
}

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn library(connection: Option<ConnectionId>) -> Handshake {
    Handshake {
        process: PROBED,
        connection,
        resumption: Resumption::Unknown,
        version: "unknown",
        cipher: "unknown",
        group: "unknown",
        cpu: micros(1000),
        duration: millis(3),
        ..sample::handshake()
    }
}

fn socket(connection: ConnectionId) -> Handshake {
    Handshake {
        source: Source::Socket,
        signature: "unknown",
        cpu: micros(1020),
        flights: Some([micros(900), micros(120)]),
        steps: None,
        ..library(Some(connection))
    }
}

fn of(process: Pid, handshake: Handshake) -> Handshake {
    Handshake {
        process,
        ..handshake
    }
}

fn closed(id: ConnectionId) -> Connection {
    Connection {
        id,
        carries: Carries::Tls,
        may_be_http2: None,
        application_received: 100,
        ..sample::connection()
    }
}

/// A joiner with its clock, and all that it gave.
struct Bench {
    joiner: Joiner,
    now: Duration,
    booked: Vec<Evidence>,
}

impl Bench {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        Self {
            joiner: Joiner::new(limits),
            now: Duration::from_secs(100),
            booked: Vec::new(),
        }
    }

    fn take(&mut self, evidence: Evidence) -> &mut Self {
        self.now += micros(50);
        let ready = self.joiner.take(evidence, self.now, |pid| pid == PROBED);
        self.booked.extend(ready);
        self
    }

    fn ends(&mut self, handshake: Handshake) -> &mut Self {
        self.take(Evidence::Handshake(Box::new(handshake)))
    }

    fn closes(&mut self, id: ConnectionId) -> &mut Self {
        self.take(Evidence::Closed(Box::new(closed(id))))
    }

    fn waits(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        let ready = self.joiner.advance(self.now);
        self.booked.extend(ready);
        self
    }

    fn hears(&mut self, process: Pid, connection: ConnectionId, name: &str) -> &mut Self {
        self.hears_first(process, connection, name, usize::MAX)
    }

    /// The first so many chunks of a captured connection.
    fn hears_first(
        &mut self,
        process: Pid,
        connection: ConnectionId,
        name: &str,
        chunks: usize,
    ) -> &mut Self {
        let mut offsets = [0_u32; 2];
        for (direction, bytes) in fixture::read(name).chunks.into_iter().take(chunks) {
            let offset = &mut offsets[usize::from(direction == Direction::FromServer)];
            let at = *offset;
            *offset += u32::try_from(bytes.len()).unwrap();
            self.take(chunk(process, connection, direction, at, bytes));
        }
        self
    }

    fn handshakes(&self) -> Vec<&Handshake> {
        let handshakes = self.booked.iter().filter_map(|evidence| match evidence {
            Evidence::Handshake(handshake) => Some(&**handshake),
            _ => None,
        });
        handshakes.collect()
    }

    fn only(&self) -> &Handshake {
        let all = self.handshakes();
        assert_eq!(all.len(), 1, "{all:#?}");
        all[0]
    }

    fn sources(&self) -> Vec<Source> {
        self.handshakes().iter().map(|one| one.source).collect()
    }

    fn comparisons(&self) -> Vec<&Comparison> {
        let all = self.booked.iter().filter_map(|evidence| match evidence {
            Evidence::Compared(comparison) => Some(&**comparison),
            _ => None,
        });
        all.collect()
    }

    fn lost(&self, loss: Loss) -> u64 {
        self.joiner.lost(loss)
    }

    /// Nothing waits, and the accounts of memory are true.
    fn assert_idle(&self) {
        let joiner = &self.joiner;
        assert!(joiner.held.is_empty() && joiner.sockets.is_empty());
        assert!(joiner.unfinished.is_empty());
    }
}

fn chunk(
    process: Pid,
    connection: ConnectionId,
    direction: Direction,
    offset: u32,
    bytes: Vec<u8>,
) -> Evidence {
    Evidence::Hello(Box::new(Chunk {
        process,
        connection,
        direction,
        opening: Opening::default(),
        offset,
        bytes,
    }))
}

const FULL: &str = "openssl30-tls13-full";
const RESUMED: &str = "openssl30-tls13-psk-resumed";
const REFUSED: &str = "openssl30-no-common-cipher";
const TLS12: &str = "openssl30-tls12-full";
