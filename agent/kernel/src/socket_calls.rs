//! The ways to see socket calls: `bpf/sockets.bpf.c`.

use super::error::Unavailable;
use super::hook::Hook;
use super::object::Storage;
use super::types::KernelTypes;

/// A way to see socket calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// The tracepoints of all socket calls (Linux 6.3).
    Tracepoint,
    /// The ends of the kernel's functions for TCP (Linux 5.15).
    Fentry,
    /// The end of every system call of the host (Linux 5.10).
    RawSyscalls,
}

const RECEIVE: &str = "tcp_recvmsg";
const RECEIVED_BY_PARAMETERS: [(u32, &str); 3] = [
    (6, "tcp_received_6"),
    (5, "tcp_received_5"),
    (4, "tcp_received_4"),
];

impl Tier {
    /// Best first. Where both of the first two load, the tracepoints are better:
    /// the kernel leaves out runs of programs on functions wherever one is
    /// preempted inside, of those on tracepoints from 7.1 on only
    /// (docs/journal/2026-11-21-hooks-on-socket-calls.md).
    pub const ALL: [Self; 3] = [Self::Tracepoint, Self::Fentry, Self::RawSyscalls];

    /// Where this way keeps the state of connections.
    pub(super) const fn storage(self) -> Storage {
        match self {
            Self::Tracepoint | Self::Fentry => Storage::Sockets,
            Self::RawSyscalls => Storage::Addresses,
        }
    }

    /// Its programs.
    ///
    /// # Errors
    ///
    /// When no program fits this kernel's functions.
    pub(super) fn hooks(self, types: &KernelTypes) -> Result<Vec<Hook>, Unavailable> {
        Ok(match self {
            Self::Tracepoint => vec![
                Hook::tracepoint("socket_received", "sock_recv_length"),
                Hook::tracepoint("socket_sent", "sock_send_length"),
            ],
            Self::Fentry => vec![
                Hook::exit_by_parameters(types, RECEIVE, &RECEIVED_BY_PARAMETERS)?,
                Hook::exit("tcp_sent", "tcp_sendmsg"),
            ],
            Self::RawSyscalls => vec![Hook::tracepoint("syscall_returned", "sys_exit")],
        })
    }
}
