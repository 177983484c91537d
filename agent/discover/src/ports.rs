//! TCP ports that processes listen on.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use super::proc_root::unless_gone;
use super::{Error, ProcRoot};
use tlsprof_common::Pid;

mod addresses;
mod holders;
mod reader;
mod udp;

pub use addresses::{Listening, listening_addresses};
pub use reader::{Life, PortReader};
pub use udp::udp_ports;

/// `TCP_LISTEN` of include/net/tcp_states.h.
const LISTEN: &str = "0A";
/// The first process. systemd holds the sockets that it hands to services.
const INIT: Pid = 1;

/// A listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Inode of the socket.
    pub socket: u64,
    /// Local address; unspecified for a socket that listens on all.
    pub address: IpAddr,
    /// TCP port.
    pub port: u16,
}

/// The listening sockets in the text of /proc/net/tcp or tcp6 (proc_pid_net(5)).
/// Connections and lines of another form are skipped.
pub fn parse_listeners(text: &[u8]) -> Vec<Listener> {
    text.split(|&byte| byte == b'\n')
        .filter_map(parse_line)
        .collect()
}

fn parse_line(line: &[u8]) -> Option<Listener> {
    let mut fields = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let (address, port) = fields.nth(1)?.rsplit_once(':')?;
    if fields.nth(1)? != LISTEN {
        return None;
    }
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(Listener {
        port,
        address: parse_address(address)?,
        socket: fields.nth(5)?.parse().ok()?,
    })
}

/// An address as one or four words of 32 bits, each printed in the byte order of
/// the host.
fn parse_address(text: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let word = u32::from_str_radix(text.get(at * 8..at * 8 + 8)?, 16).ok()?;
        // In memory it is in the order of the network.
        Some(u32::from_be_bytes(word.to_ne_bytes()))
    };
    match text.len() {
        8 => Some(Ipv4Addr::from_bits(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let bits = words
                .iter()
                .fold(0, |bits, word| bits << 32 | u128::from(*word));
            Some(Ipv6Addr::from_bits(bits).into())
        }
        _ => None,
    }
}

/// The inode in a link of /proc/PID/fd, if it is of a socket: `socket:[123]`.
fn socket_inode(link: &Path) -> Option<u64> {
    link.to_str()?
        .strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// Who listens where, at one moment.
///
/// A process counts if it has the socket open, whoever has bound it. The first
/// process does not, where another one has the same socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListeningPorts {
    by_process: BTreeMap<Pid, BTreeSet<u16>>,
}

impl ListeningPorts {
    /// Reads the sockets of the given processes, each in its own network
    /// namespace. A process that is gone, or may not be read, has none.
    pub fn read(proc: &ProcRoot, pids: impl IntoIterator<Item = Pid>) -> Self {
        PortReader::default().read(proc, pids.into_iter().map(|pid| (pid, 0)))
    }

    /// These processes listen on this port, and no others anywhere.
    #[cfg(any(test, feature = "sample"))]
    pub fn on<const N: usize>(port: u16, pids: [Pid; N]) -> Self {
        let one = |pid| (pid, BTreeSet::from([port]));
        Self {
            by_process: pids.map(one).into(),
        }
    }

    fn of_holders(sockets: impl Iterator<Item = Vec<(Pid, u16)>>) -> Self {
        let mut by_process: BTreeMap<Pid, BTreeSet<u16>> = BTreeMap::new();
        for holders in sockets {
            let shared = holders.iter().any(|&(pid, _)| pid != INIT);
            for (pid, port) in holders {
                if pid != INIT || !shared {
                    by_process.entry(pid).or_default().insert(port);
                }
            }
        }
        Self { by_process }
    }

    /// Ports that any of these processes listens on.
    pub fn of(&self, pids: impl IntoIterator<Item = Pid>) -> BTreeSet<u16> {
        pids.into_iter()
            .filter_map(|pid| self.by_process.get(&pid))
            .flatten()
            .copied()
            .collect()
    }

    /// Processes that listen on this port, on any address and in any network
    /// namespace.
    pub fn listening_on(&self, port: u16) -> impl Iterator<Item = Pid> {
        self.by_process
            .iter()
            .filter(move |(_, ports)| ports.contains(&port))
            .map(|(&pid, _)| pid)
    }
}

/// Listening sockets of the process's network namespace, by inode; None if the
/// process is gone.
fn listening_sockets(proc: &ProcRoot, pid: Pid) -> Option<HashMap<u64, u16>> {
    let listeners = listeners(proc, pid)?.into_iter();
    Some(
        listeners
            .map(|listener| (listener.socket, listener.port))
            .collect(),
    )
}

fn listeners(proc: &ProcRoot, pid: Pid) -> Option<Vec<Listener>> {
    let mut text = proc.read(pid, "net/tcp").ok()??;
    // Not there when IPv6 is switched off.
    text.extend(
        proc.read(pid, "net/tcp6")
            .ok()
            .flatten()
            .unwrap_or_default(),
    );
    Some(parse_listeners(&text))
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
