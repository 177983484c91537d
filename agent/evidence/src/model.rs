//! Evidence in Rust types.

use std::time::Duration;

use super::hello::{self, Direction, Facts};
use tlsprof_common::{
    Connection, ConnectionId, Opening, Outcome, Pid, ProcessEvent, Reason, Resumption, Role,
    Source, Steps, Waits,
};

/// One handshake, when it has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Handshake {
    /// The process that took part in it.
    pub process: Pid,
    /// Boot-time clock when that process started, in nanoseconds.
    pub process_start: u64,
    /// Name of the thread (comm), for processes that are gone already.
    pub comm: String,
    /// Role of that process.
    pub role: Role,
    /// What saw it; [`Source::Library`] if both did.
    pub source: Source,
    /// The TCP connection that it took place on, where that is known.
    pub connection: Option<ConnectionId>,
    /// [`Source::Socket`]: a library handshake names this connection, or will; no
    /// other is the same.
    pub named: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether a session was resumed.
    pub resumption: Resumption,
    /// TLS version label (`TLS1.3`), `unknown` where the source cannot see it.
    pub version: &'static str,
    /// Cipher suite by its TLS registry name, or `unknown`.
    pub cipher: &'static str,
    /// Key exchange group by its TLS registry name (`x25519`, `secp384r1`), or
    /// `none` for a handshake without key exchange, or `unknown`.
    pub group: &'static str,
    /// Own signature (`rsa_2048`, `ecdsa_p256`, `ed25519`), `none`, or `unknown`.
    pub signature: &'static str,
    /// The first call, by the monotonic clock.
    pub began: Duration,
    /// CPU time of the thread inside the handshake, user and system.
    pub cpu: Duration,
    /// Wall clock from the first call to the end.
    pub duration: Duration,
    /// Parts of `cpu`; None when the step probes were not attached throughout.
    pub steps: Option<Steps>,
    /// [`Source::Socket`]: parts of `cpu` up to the server's first answer, and
    /// from the peer's next bytes to the end. They add up to it.
    pub flights: Option<[Duration; 2]>,
    /// [`Source::Socket`]: CPU time, not in `cpu`, after the peer's last
    /// handshake bytes where application data came with them: finishing the
    /// handshake and answering the request cannot be separated.
    pub finish_and_answer: Duration,
    /// [`Source::Socket`]: another thread answered than the one that had read, and it is
    /// not proved that these two did all the work: `cpu` may lack some of it.
    pub offloaded: bool,
    /// Time between the work of the two, an upper bound of what `cpu` lacks.
    pub unseen: Duration,
    /// Time off the CPU for each of [`WaitReason::ALL`].
    pub waits: Waits,
    /// Calls into the library that it took, retries included.
    pub calls: u32,
    /// Probes hit inside these calls; their cost is part of `cpu`.
    pub probe_hits: u32,
    /// The client proves who it is, so that the server verifies its certificate: in TLS 1.3 by the
    /// length of its flight, before by what travels in clear.
    pub client_authenticates: bool,
    /// The library's reason, where it raised an error.
    pub error_reason: Option<Reason>,
    /// What both sides said in clear, where it was seen.
    pub hello: Option<Box<Facts>>,
    /// Booked for a connection that was not followed, as a copy of a handshake that was.
    pub estimate: Option<Estimate>,
}

/// What an estimated handshake adds to the errors of sums: variances, which add up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Of the number of handshakes.
    pub count_variance: f64,
    /// Of their CPU time, in square seconds.
    pub cpu_variance: f64,
}

impl Handshake {
    /// Whether a clock ran for it: a socket handshake that a library measures is mostly not timed again, and
    /// has no `calls`.
    pub(crate) const fn is_timed(&self) -> bool {
        !(self.named && self.calls == 0)
    }

    /// Removes what only the steps show: they could not be seen.
    pub fn forget_steps(&mut self) {
        self.steps = None;
        self.resumption = Resumption::Unknown;
        self.group = "unknown";
        self.signature = "unknown";
    }
}

/// One report of the kernel side.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    /// A handshake ended.
    Handshake(Box<Handshake>),
    /// A process was forked, replaced or ended.
    Process(ProcessEvent),
    /// A TCP connection was opened, and its owner is known.
    Opened(Opening),
    /// A TCP connection ended.
    Closed(Box<Connection>),
    /// Bytes in clear at the beginning of a TCP connection.
    Hello(Box<Chunk>),
    /// Both sources saw a handshake. The kernel side does not know: see [`join`](crate::join).
    Compared(Box<Comparison>),
}

/// What two sources say of one completed handshake, which is booked apart, with
/// the figures of the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The process that took part in it.
    pub process: Pid,
    /// Name of the thread (comm), for processes that are gone already.
    pub comm: String,
    /// Role of that process.
    pub role: Role,
    /// When the handshake began, as it is booked.
    pub began: Duration,
    /// The TCP connection that it took place on, where that is known.
    pub connection: Option<ConnectionId>,
    /// CPU time by probes in the TLS library.
    pub library: Duration,
    /// CPU time by socket calls.
    pub socket: Duration,
}

/// The next bytes in clear at the beginning of TLS on a connection, in one direction.
/// Kept only until they are parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The process that read or wrote them.
    pub process: Pid,
    /// The connection.
    pub connection: ConnectionId,
    /// Who sent them: the client is who opened the TCP connection.
    pub direction: Direction,
    /// What came before TLS.
    pub opening: hello::Opening,
    /// Where they stand in this direction of TLS; what is missing before them could not
    /// be read.
    pub offset: u32,
    /// The bytes, at most 4096.
    pub bytes: Vec<u8>,
}
