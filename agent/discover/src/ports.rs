//! TCP ports that processes listen on.

use std::fs;
use std::path::Path;

use super::proc_root::unless_gone;
use super::{Error, ProcRoot};
use tlsprof_common::Pid;

mod holders;
mod listening;
mod reader;
mod sockets;
mod udp;

pub use listening::ListeningPorts;
pub use reader::{Life, PortReader};
pub use sockets::{Listener, parse_listeners};
pub use udp::udp_ports;

/// The inode in a link of /proc/PID/fd, if it is of a socket: `socket:[123]`.
fn socket_inode(link: &Path) -> Option<u64> {
    link.to_str()?
        .strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

impl ListeningPorts {
    /// Reads the sockets of the given processes, each in its own network
    /// namespace. A process that is gone, or may not be read, has none.
    pub fn read(proc: &ProcRoot, pids: impl IntoIterator<Item = Pid>) -> Self {
        PortReader::default().read(proc, pids.into_iter().map(|pid| (pid, 0)))
    }
}

impl ProcRoot {
    /// Inodes of the sockets that a process has open; empty if it is gone.
    fn sockets(&self, pid: Pid) -> Result<Vec<u64>, Error> {
        let path = self.path(pid, "fd");
        let Some(entries) = unless_gone(fs::read_dir(&path), path)? else {
            return Ok(Vec::new());
        };
        // A descriptor that was closed in the meantime has no link to read.
        let links = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        Ok(links.filter_map(|link| socket_inode(&link)).collect())
    }
}

#[cfg(test)]
mod tests;
