//! TCP connections.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantiles::Quantiles;
use super::words::{Closer, Role};

/// TCP connections of a service in one role, their openings seen.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Connections {
    /// `server` (it was connected to) or `client` (it connected).
    pub role: Role,
    /// How many were opened.
    pub opened: u64,
    /// Those of them that ended, by who ended them.
    pub closed: Vec<ClosedConnections>,
    /// From the end of the TCP handshake to the end of the socket.
    pub duration: Quantiles,
    /// Payload received by those that ended, in bytes.
    pub bytes_received: u64,
    /// Payload sent by those that ended, in bytes.
    pub bytes_sent: u64,
    /// TIME_WAIT sockets that they left on this side.
    pub time_wait_created: u64,
    /// TIME_WAIT sockets that stood at the end: those created in the last 60 s,
    /// but no more than the kernel counts in the service's network namespace.
    pub time_wait_standing: u64,
    /// Whether turns are requests, to 1%: false where clients offered HTTP/2 and the server chose
    /// it, or may have (TLS 1.3 encrypts the choice), on a connection that is open, or that received
    /// enough to hide more requests. Null in reports of versions without this field.
    #[serde(default)]
    pub turns_are_requests: Option<bool>,
}

/// Connections that ended in one way.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct ClosedConnections {
    /// Who sent close_notify, FIN or RST first: `local` (the service), `remote` (its peer), or
    /// `timeout` (the peer no longer answered).
    pub closed_by: Closer,
    /// How many.
    pub count: u64,
    /// Those of them that ended by a reset, from either side.
    pub reset: u64,
    /// Distribution of turns; empty where the kernel cannot show socket calls.
    pub turns: Vec<TurnCount>,
}

/// Connections with so many turns.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct TurnCount {
    /// Least number of turns. A turn is a request and its answer; see `turns_are_requests`.
    pub from: u32,
    /// Greatest number of turns; the same up to 128.
    pub to: u32,
    /// Connections.
    pub connections: u64,
}

/// Ephemeral ports for connections to one remote endpoint.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct EphemeralPorts {
    /// Those of open connections and of TIME_WAIT.
    pub used: u64,
    /// How many there are in the network namespace (`ip_local_port_range`).
    pub available: u32,
}
