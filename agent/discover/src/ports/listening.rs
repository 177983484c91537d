//! Who listens where.

use std::collections::{BTreeMap, BTreeSet};

use tlsprof_common::{Listener, Pid};

/// The first process. systemd holds the sockets that it hands to services.
const INIT: Pid = 1;

/// Who listens where, at one moment.
///
/// A process counts if it has the socket open, whoever has bound it. The first
/// process does not, where another one has the same socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListeningPorts {
    by_process: BTreeMap<Pid, BTreeSet<u16>>,
    by_socket: BTreeMap<u64, BTreeSet<Pid>>,
}

impl ListeningPorts {
    /// Of these listeners.
    pub fn new(listeners: impl IntoIterator<Item = Listener>) -> Self {
        let mut sockets: BTreeMap<u64, (u16, BTreeSet<Pid>)> = BTreeMap::new();
        for one in listeners {
            let (_, holders) = sockets
                .entry(one.socket)
                .or_insert((one.port, BTreeSet::new()));
            holders.insert(one.process);
        }
        let mut ports = Self::default();
        for (socket, (port, mut holders)) in sockets {
            if holders.len() > 1 {
                holders.remove(&INIT);
            }
            for process in &holders {
                ports.by_process.entry(*process).or_default().insert(port);
            }
            ports.by_socket.insert(socket, holders);
        }
        ports
    }

    /// These processes listen on this port, and no others anywhere.
    #[cfg(test)]
    pub(crate) fn on<const N: usize>(port: u16, pids: [Pid; N]) -> Self {
        Self::new(pids.map(|process| Listener {
            process,
            socket: 1,
            port,
        }))
    }

    /// Ports that any of these processes listens on.
    pub fn of(&self, pids: impl IntoIterator<Item = Pid>) -> BTreeSet<u16> {
        pids.into_iter()
            .filter_map(|pid| self.by_process.get(&pid))
            .flatten()
            .copied()
            .collect()
    }

    /// Processes that have a listening socket open, by its inode; None if nobody is known to.
    pub fn holders(&self, socket: u64) -> Option<&BTreeSet<Pid>> {
        self.by_socket.get(&socket)
    }

    /// Processes that listen on this port, on any address and in any network
    /// namespace.
    pub(crate) fn listening_on(&self, port: u16) -> impl Iterator<Item = Pid> {
        self.by_process
            .iter()
            .filter(move |(_, ports)| ports.contains(&port))
            .map(|(&pid, _)| pid)
    }
}
