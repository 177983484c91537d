//! What all parts share.

use tlsprof_common::contract::TLSPROF_COPIED_BYTES;
use tlsprof_common::labelled;

/// Bytes of TLS that are read in one direction before giving up: the kernel side copies
/// no record that begins beyond. A server's clear flight is mostly its certificate chain,
/// and they hold five large ones.
pub const TLS_LIMIT: usize = TLSPROF_COPIED_BYTES as usize;

/// Alerts that are kept for one connection. A peer can send warnings forever.
pub(super) const ALERTS: usize = 4;

labelled! {
    /// Which way bytes travelled. Client is who opens the TLS connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Direction {
        /// From the client to the server.
        FromClient = "client",
        /// From the server to the client.
        FromServer = "server",
    }
}

labelled! {
    /// Why an exchange was given up. What was learned before stays valid.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum GaveUp {
        /// More than [`TLS_LIMIT`] bytes, or a message that says it is longer.
        TooLong = "too_long",
        /// Records or messages that no TLS peer would accept.
        Malformed = "malformed",
        /// Bytes were lost on the way from the kernel.
        Gap = "gap",
        /// The first record seen is not the first of the connection.
        Underway = "underway",
    }
}
