//! What CPU time was spent on. The rules are pure: functions and kinds of code in,
//! an activity out.

mod names;

use super::fingerprint::Kind;

/// What CPU time was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
    /// All that a thread does, user and system, while it is in a TLS handshake.
    Handshake,
    /// Record protection outside handshakes, kernel TLS included.
    Encryption,
    /// SYN handling, accept.
    TcpOpen,
    /// close, FIN, TIME_WAIT and its timers.
    TcpClose,
    /// Send and receive.
    SocketIo,
    /// The rest.
    Application,
}

/// How a CPU was running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// In the program.
    User,
    /// In the kernel, for the program: a system call, a page fault.
    System,
    /// In the kernel, for the network: an interrupt on whatever thread was there.
    Softirq,
}

/// What is known of the user code at a sampled address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserCode {
    /// It belongs to an image that does nothing but TLS and its cryptography.
    TlsLibrary,
    /// What its instructions are made of.
    Fingerprint(Kind),
    /// Nothing.
    Unknown,
}
