//! Who listens where.

use std::collections::{BTreeMap, BTreeSet};

use tlsprof_common::Pid;

/// The first process. systemd holds the sockets that it hands to services.
pub(super) const INIT: Pid = 1;

/// Who listens where, at one moment.
///
/// A process counts if it has the socket open, whoever has bound it. The first
/// process does not, where another one has the same socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListeningPorts {
    by_process: BTreeMap<Pid, BTreeSet<u16>>,
}

impl ListeningPorts {
    /// These processes listen on this port, and no others anywhere.
    #[cfg(test)]
    pub(crate) fn on<const N: usize>(port: u16, pids: [Pid; N]) -> Self {
        let one = |pid| (pid, BTreeSet::from([port]));
        Self {
            by_process: pids.map(one).into(),
        }
    }

    pub(super) fn of_holders(sockets: impl Iterator<Item = Vec<(Pid, u16)>>) -> Self {
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
    pub(crate) fn listening_on(&self, port: u16) -> impl Iterator<Item = Pid> {
        self.by_process
            .iter()
            .filter(move |(_, ports)| ports.contains(&port))
            .map(|(&pid, _)| pid)
    }
}
