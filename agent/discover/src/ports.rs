//! TCP ports that processes listen on.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::proc_root::unless_gone;
use super::{Error, ProcRoot};
use tlsprof_common::{Listener, Pid};

mod listening;
mod sockets;
mod udp;

pub use listening::ListeningPorts;
use sockets::{Sockets, listening_sockets};
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
    /// Reads the sockets of the given processes in /proc, each in its own network namespace: a system
    /// call for each open file. A process that is gone, or may not be read, has none.
    pub fn read(proc: &ProcRoot, pids: impl IntoIterator<Item = Pid>) -> Self {
        let mut namespaces = HashMap::new();
        let listeners = pids
            .into_iter()
            .flat_map(|pid| listeners(proc, pid, &mut namespaces).unwrap_or_default());
        Self::new(listeners)
    }
}

/// The listening sockets of a process. `namespaces` are those that were read, each through the first of
/// its processes that still lives.
fn listeners(
    proc: &ProcRoot,
    process: Pid,
    namespaces: &mut HashMap<PathBuf, Sockets>,
) -> Option<Vec<Listener>> {
    let namespace = proc.network_namespace(process)?;
    if !namespaces.contains_key(&namespace) {
        namespaces.insert(namespace.clone(), listening_sockets(proc, process)?);
    }
    let ports = namespaces.get(&namespace)?;
    let open = proc.sockets(process).unwrap_or_default().into_iter();
    let listeners = open.filter_map(|socket| {
        Some(Listener {
            process,
            socket,
            port: *ports.get(&socket)?,
        })
    });
    Some(listeners.collect())
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
