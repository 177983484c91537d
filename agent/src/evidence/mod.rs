//! What the kernel side reports, decoded into the words of the design.

pub mod accept_queue;
pub mod activity;
mod connection;
pub mod cpu;
pub mod decode;
pub mod fingerprint;
pub mod hello;
pub mod join;
pub mod packets;
pub mod reasons;
#[cfg(test)]
pub(crate) mod sample;

use std::time::Duration;

use hello::Facts;

pub use connection::{Carries, Closer, Connection, Opening, Owner, Remote, Whole};

/// A process (thread group) id in the initial pid namespace.
pub type Pid = u32;

/// Role of the profiled process in a handshake or a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// It received the ClientHello, or was connected to.
    Server,
    /// It sent the ClientHello, or connected.
    Client,
}

/// What saw a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// Probes in the TLS library: exact to the call.
    Library,
    /// TLS records in socket calls: from the receive of handshake bytes until
    /// the thread turns to something else.
    Socket,
}

/// Tells TCP connections apart; never reused while the agent runs.
pub type ConnectionId = u64;

/// How a handshake ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Both Finished messages were exchanged.
    Completed,
    /// The TLS library raised an error and gave up.
    Failed,
    /// The peer went away, or the connection object or its process ended, first.
    Abandoned,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Completed, Self::Failed, Self::Abandoned];
}

/// Whether a handshake took up an earlier session, and by which means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resumption {
    /// A full handshake.
    None,
    /// TLS 1.2 session id (RFC 5246, 7.3).
    SessionId,
    /// TLS 1.2 session ticket (RFC 5077).
    Ticket,
    /// TLS 1.3 pre-shared key (RFC 8446, 2.2).
    Psk,
    /// TLS 1.2 abbreviated handshake; the source cannot tell a session id from
    /// a ticket.
    Abbreviated,
    /// The source could not see it.
    Unknown,
}

impl Resumption {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::SessionId,
        Self::Ticket,
        Self::Psk,
        Self::Abbreviated,
        Self::Unknown,
    ];
}

/// Part of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Key generation, key agreement, encapsulation, check of the peer's key.
    KeyExchange,
    /// Own signature.
    Signing,
    /// The peer's signature and certificate chain; a server's own chain building.
    Verification,
    /// RSA key transport: decryption of the premaster secret.
    RsaDecryption,
    /// HKDF or the TLS PRF.
    KeyDerivation,
    /// All the rest: messages, transcript hash, record protection, system calls.
    Other,
}

/// Why a thread was not on the CPU while its handshake was under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitReason {
    /// Runnable, but another thread had the CPU.
    RunQueue,
    /// In a futex.
    Lock,
    /// In block I/O.
    Disk,
    /// In a socket or poll system call.
    Network,
    /// In getrandom, or reading a random source.
    Random,
    /// Reading or writing another pipe or FIFO.
    Pipe,
    /// Blocked for another reason.
    Other,
    /// Between two calls of a non-blocking handshake: waiting for the peer, or
    /// for the event loop to come round.
    BetweenCalls,
}

impl Step {
    /// All steps, in the order in which reports show them.
    pub const ALL: [Self; 6] = [
        Self::KeyExchange,
        Self::Signing,
        Self::Verification,
        Self::RsaDecryption,
        Self::KeyDerivation,
        Self::Other,
    ];
}

impl WaitReason {
    /// All reasons, in the order in which reports show them.
    pub const ALL: [Self; 8] = [
        Self::RunQueue,
        Self::Lock,
        Self::Disk,
        Self::Network,
        Self::Random,
        Self::Pipe,
        Self::Other,
        Self::BetweenCalls,
    ];
}

macro_rules! label {
    ($type:ty { $($variant:ident => $text:literal),+ $(,)? }) => {
        impl $type {
            /// The value of the metric label and of the report's JSON.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}

label!(Role { Server => "server", Client => "client" });
label!(Source { Library => "library", Socket => "socket" });
label!(Outcome { Completed => "completed", Failed => "failed", Abandoned => "abandoned" });
label!(Resumption {
    None => "none", SessionId => "session_id", Ticket => "ticket", Psk => "psk",
    Abbreviated => "abbreviated", Unknown => "unknown",
});
label!(Step {
    KeyExchange => "key_exchange", Signing => "signing", Verification => "verification",
    RsaDecryption => "rsa_decryption", KeyDerivation => "key_derivation", Other => "other",
});
label!(WaitReason {
    RunQueue => "run_queue", Lock => "lock", Disk => "disk", Network => "network",
    Random => "random", Pipe => "pipe", Other => "other", BetweenCalls => "between_calls",
});

/// CPU time of the steps of one handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// Time in each of [`Step::ALL`]; they add up to the handshake's CPU time.
    pub cpu: [Duration; 6],
    /// False when key derivation was not probed during this handshake, and its
    /// time is still in [`Step::Other`].
    pub key_derivation_observed: bool,
}

/// One handshake, when it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// handshake and answering the request cannot be told apart.
    pub finish_and_answer: Duration,
    /// [`Source::Socket`]: another thread answered than the one that had read, and it is
    /// not proved that these two did all the work: `cpu` may lack some of it.
    pub offloaded: bool,
    /// Time between the work of the two, an upper bound of what `cpu` lacks.
    pub unseen: Duration,
    /// Time off the CPU for each of [`WaitReason::ALL`].
    pub waits: [Duration; 8],
    /// Calls into the library that it took, retries included.
    pub calls: u32,
    /// Probes hit inside these calls; their cost is part of `cpu`.
    pub probe_hits: u32,
    /// The library's reason number, where it raised an error.
    pub error_reason: Option<u32>,
    /// What both sides said in clear, where it was seen.
    pub hello: Option<Box<Facts>>,
}

impl Handshake {
    /// Unlearns what only the steps tell: they could not be seen.
    pub fn forget_steps(&mut self) {
        self.steps = None;
        self.resumption = Resumption::Unknown;
        self.group = "unknown";
        self.signature = "unknown";
    }
}

/// A change in the population of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessEvent {
    /// `child` was forked by `parent` (processes, not threads).
    Fork {
        /// The process that called fork.
        parent: Pid,
        /// The new process.
        child: Pid,
        /// Its name (comm).
        comm: String,
    },
    /// The process replaced its program.
    Exec {
        /// The process.
        process: Pid,
        /// File name as given to execve; cut at 127 bytes.
        path: String,
        /// New name (comm).
        comm: String,
    },
    /// The last thread of the process ended.
    Exit {
        /// The process.
        process: Pid,
        /// CPU time of all its threads over its whole life.
        cpu: LifetimeCpu,
    },
}

/// CPU time that a process used until its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LifetimeCpu {
    /// Of all its threads, exact.
    pub total: Duration,
    /// What clock ticks found in user mode: good for a share of the total only.
    pub user_ticks: Duration,
    /// What clock ticks found in system mode, likewise.
    pub system_ticks: Duration,
}

impl LifetimeCpu {
    /// The part of the total in system mode, as the kernel tells it to who waits for the
    /// process: divided like its ticks, and all user time if no tick hit it
    /// (`cputime_adjust` in kernel/sched/cputime.c).
    pub fn system(self) -> Duration {
        let ticks = self.user_ticks.saturating_add(self.system_ticks);
        if ticks.is_zero() {
            return Duration::ZERO;
        }
        self.total
            .mul_f64(self.system_ticks.div_duration_f64(ticks))
    }
}

/// One report of the kernel side.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Both sources saw a handshake. The kernel side does not know: see [`join`].
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
    pub direction: hello::Direction,
    /// What came before TLS.
    pub opening: hello::Opening,
    /// Where they stand in this direction of TLS; what is missing before them could not
    /// be read.
    pub offset: u32,
    /// The bytes, at most 4096.
    pub bytes: Vec<u8>,
}
