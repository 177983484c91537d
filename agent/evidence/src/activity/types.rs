//! What a sample shows, and what it counts for.

use tlsprof_common::{InterruptTime, labelled};

use crate::fingerprint::Kind;

labelled! {
    /// What CPU time was spent on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Activity {
        /// All that a thread does, user and system, while it is in a TLS handshake.
        Handshake = "handshake",
        /// Record protection outside handshakes, kernel TLS included.
        Encryption = "encryption",
        /// SYN handling, accept.
        TcpOpen = "tcp_open",
        /// close, FIN, TIME_WAIT and its timers.
        TcpClose = "tcp_close",
        /// Send and receive.
        SocketIo = "socket_io",
        /// The rest.
        Application = "application",
    }
}

labelled! {
    /// How a CPU was running.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Mode {
        /// In the program.
        User = "user",
        /// In the kernel, for the program: a system call, a page fault.
        System = "system",
        /// In the kernel, in an interrupt or a softirq: on whatever thread was there,
        /// mostly for the network.
        Softirq = "softirq",
    }
}

/// Mostly a part of [`Activity::Application`]: what it takes to have processes and threads, whatever
/// they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Upkeep {
    /// What a process does in its first seconds, before its first handshake.
    Start,
    /// Page faults in handshakes; these are in [`Activity::Handshake`].
    HandshakeMemory,
    /// Page faults and mappings.
    Memory,
    /// The dynamic loader: it links a program with its libraries.
    Loader,
    /// Processes and threads are forked, execute a program, end, are waited for.
    Process,
}

/// What is known of the user code at a sampled address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserCode {
    /// It belongs to an image that does nothing but TLS and its cryptography.
    TlsLibrary,
    /// It belongs to the dynamic loader.
    Loader,
    /// What its instructions are made of.
    Fingerprint(Kind),
    /// Nothing.
    Unknown,
}

/// What is known of TLS in the service that a sample belongs to. Cryptography
/// serves other ends, too: hash tables (Go's with AES), tokens, files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// No connection was seen from its beginning: it may have had some before.
    Unknown,
    /// Connections were seen, none of which carried TLS.
    Absent,
    /// Connections carry TLS.
    Seen {
        /// Some of them with a cipher suite that has a hash for its MAC (CBC).
        hashed_mac: bool,
        /// Some of them with ChaCha20-Poly1305.
        chacha20: bool,
    },
}

/// Packets on their way through the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packets {
    /// Of any protocol, for this host or another: it does not show yet.
    Any,
    /// Of another protocol than TCP, or for another host.
    NotTcp,
}

/// What a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Basis {
    /// The thread was in a handshake.
    Phase,
    /// A kernel function of the list.
    KernelFunction,
    /// What the user code is.
    Code,
    /// Nothing known was there. It counts as [`Activity::Application`], and its
    /// share is worth showing: the rules may have a gap.
    Unclassified,
}

/// What a sample counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What the time was spent on.
    pub activity: Activity,
    /// How the CPU was running.
    pub mode: Mode,
    /// What that rests on.
    pub basis: Basis,
    /// The thread was in a probe, of this program or of another, and would not have
    /// spent this time without.
    pub traced: bool,
    /// Where kernel and loader are at the upkeep of processes and threads.
    pub upkeep: Option<Upkeep>,
    /// Packets that pass, where nothing else shows what the kernel was at work on.
    pub packets: Option<Packets>,
}

impl Verdict {
    /// Whether this time is in the utime and stime of the thread on the CPU: then
    /// it counts there, [`Mode::Softirq`] as [`Mode::System`], and is not divided
    /// among the owners of connections. None if it is not known.
    pub const fn in_thread_time(self, interrupts: InterruptTime) -> Option<bool> {
        match (self.mode, interrupts) {
            (Mode::User | Mode::System, _) | (Mode::Softirq, InterruptTime::InThread) => Some(true),
            (Mode::Softirq, InterruptTime::Apart) => Some(false),
            (Mode::Softirq, InterruptTime::Unknown) => None,
        }
    }
}
