//! What the kernel's work for the network, done outside of any process, is divided by.

use super::ConnectionAccount;

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

    pub(super) const fn add(&mut self, other: Self) {
        self.opened = self.opened.saturating_add(other.opened);
        self.closed = self.closed.saturating_add(other.closed);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    pub(super) fn of(account: &ConnectionAccount) -> Self {
        Self {
            opened: account.opened,
            closed: account.closed_count(),
            bytes: account.bytes_received.saturating_add(account.bytes_sent),
        }
    }
}
