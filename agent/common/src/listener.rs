//! Who listens where.

use crate::Pid;

/// A process that has a listening TCP socket open, whoever has bound it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The process.
    pub process: Pid,
    /// Inode of the socket; of all network namespaces alike.
    pub socket: u64,
    /// TCP port.
    pub port: u16,
}
