//! On which addresses a service listens.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use super::sockets::listeners;
use crate::ProcRoot;
use tlsprof_common::Pid;

/// Where processes listen on one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listening {
    /// In this process's own network namespace, on these addresses; none if they
    /// do not listen.
    Here(BTreeSet<IpAddr>),
    /// None of them is in this process's network namespace.
    Elsewhere,
}

/// The addresses on which any of these processes listens on a TCP port, in the
/// network namespace of this process.
pub fn listening_addresses(proc: &ProcRoot, pids: &[Pid], port: u16) -> Listening {
    let own = proc.own_network_namespace();
    let mut here = pids.iter().copied().filter(|pid| {
        let namespace = proc.read_link(*pid, "ns/net").ok().flatten();
        namespace.is_some() && namespace == own
    });
    let Some(first) = here.next() else {
        return Listening::Elsewhere;
    };
    let mut found = BTreeSet::new();
    let mut left: HashMap<u64, IpAddr> = listeners(proc, first)
        .unwrap_or_default()
        .into_iter()
        .filter(|listener| listener.port == port)
        .map(|listener| (listener.socket, listener.address))
        .collect();
    for pid in std::iter::once(first).chain(here) {
        // Mostly the first process has them all, and a service may have thousands.
        if left.is_empty() {
            break;
        }
        let open = proc.sockets(pid).unwrap_or_default();
        found.extend(open.iter().filter_map(|socket| left.remove(socket)));
    }
    Listening::Here(found)
}
