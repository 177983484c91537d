//! What the kernel's work for the network, done outside of any process, is divided by.

use super::{ConnectionAccount, Ledger, ServiceAccount};
use tlsprof_evidence::Evidence;

/// Events on TCP connections, so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkEvents {
    /// Connections that were opened.
    pub opened: u64,
    /// Connections that ended.
    pub closed: u64,
    /// Payload of those that ended, in both directions, in bytes.
    pub bytes: u64,
}

impl NetworkEvents {
    /// What has happened since.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            opened: self.opened.saturating_sub(before.opened),
            closed: self.closed.saturating_sub(before.closed),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }

    const fn add(&mut self, other: Self) {
        self.opened = self.opened.saturating_add(other.opened);
        self.closed = self.closed.saturating_add(other.closed);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    fn of(account: &ConnectionAccount) -> Self {
        Self {
            opened: account.opened,
            closed: account.closed_count(),
            bytes: account.bytes_received.saturating_add(account.bytes_sent),
        }
    }
}

impl ServiceAccount {
    /// Events on its connections, in both roles.
    pub fn network_events(&self) -> NetworkEvents {
        let mut events = NetworkEvents {
            closed: self.connections_from_before,
            ..NetworkEvents::default()
        };
        for account in self.connections.values() {
            events.add(NetworkEvents::of(account));
        }
        events
    }
}

impl Ledger {
    /// A connection of no profiled service: it is not booked, but the kernel's work for
    /// the network is its, too.
    pub fn record_unprofiled(&mut self, evidence: &Evidence) {
        let event = match evidence {
            Evidence::Opened(_) => NetworkEvents {
                opened: 1,
                ..NetworkEvents::default()
            },
            Evidence::Closed(connection) => NetworkEvents {
                opened: 0,
                closed: 1,
                bytes: connection
                    .bytes_received
                    .saturating_add(connection.bytes_sent),
            },
            _ => return,
        };
        self.unprofiled.add(event);
    }

    /// Events on the connections of services that are not profiled.
    pub const fn unprofiled_events(&self) -> NetworkEvents {
        self.unprofiled
    }
}
