//! What the hellos of TLS connections say, and where figures come from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::{Attempt, Resumption, Role};

/// Hellos of a service in one role, as far as they travel in clear.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Hellos {
    /// `server` or `client`.
    pub role: Role,
    /// Handshakes of which the ClientHello was read.
    pub count: u64,
    /// These, by what became of the attempt to take up an earlier session.
    pub attempts: Vec<AttemptCount>,
    /// ClientHellos that offered a TLS version.
    pub offered_versions: Vec<NameCount>,
    /// ClientHellos that offered a key exchange group.
    pub offered_groups: Vec<NameCount>,
    /// `server_name`, `post_quantum`, `early_data`, `hello_retry_request`,
    /// `proxy_protocol`.
    pub features: Vec<NameCount>,
    /// Application protocols (ALPN) that servers chose; TLS 1.3 encrypts them.
    pub application_protocols: Vec<NameCount>,
    /// Protocols that switched to TLS (STARTTLS).
    pub upgrades: Vec<NameCount>,
}

/// Attempts to take up an earlier session.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct AttemptCount {
    /// `not_offered`, `accepted`, `refused` or `unknown`.
    pub attempt: Attempt,
    /// By which means it was accepted, or else offered: `none`, `session_id`,
    /// `ticket`, `psk` or `abbreviated`.
    pub means: Resumption,
    /// How many.
    pub count: u64,
}

/// How often a name of a TLS registry came; `other` for names without one.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct NameCount {
    /// The name.
    pub name: String,
    /// How many.
    pub count: u64,
}

/// Alerts that travelled in clear.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct AlertCount {
    /// `server` or `client`: the role of the service.
    pub role: Role,
    /// `received` or `sent` by the service.
    pub direction: String,
    /// What they say, by the TLS registry.
    pub description: String,
    /// How many.
    pub count: u64,
}

/// Payload of TLS connections that ended, after their handshakes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct ApplicationBytes {
    /// `server` or `client`.
    pub role: Role,
    /// Cipher suite, or `unknown`.
    pub cipher: String,
    /// Received, in bytes, as TCP carried it.
    pub received: u64,
    /// Sent, in bytes, as TCP carried it.
    pub sent: u64,
}

/// Handshakes that only socket calls showed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct SocketHandshakes {
    /// `server` or `client`.
    pub role: Role,
    /// How many.
    pub count: u64,
    /// Their CPU time, in seconds.
    pub cpu_seconds: f64,
    /// Part of it up to the server's first answer: in a full handshake of a
    /// server, key generation and signature.
    pub first_flight_seconds: f64,
    /// Part of it from the peer's next bytes to the end.
    pub last_flight_seconds: f64,
    /// Those of them that another thread answered than the one that read the socket, where
    /// further threads may have worked as well: their CPU time is a lower bound.
    pub offloaded: u64,
}

/// Handshakes that are booked for connections that were not followed, because profiling kept to
/// its budget. They are in all other figures of handshakes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct EstimatedHandshakes {
    /// `server` or `client`.
    pub role: Role,
    /// How many.
    pub count: u64,
    /// With a probability of 95%, their number is not further off than this.
    pub(crate) count_margin: f64,
    /// The same for the CPU time of handshakes, in seconds.
    pub(crate) cpu_margin_seconds: f64,
}

/// Turns of connections that were not followed, because profiling kept to its budget. They are in
/// all other figures of turns.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct EstimatedTurns {
    /// `server` or `client`.
    pub role: Role,
    /// How many.
    pub count: u64,
    /// On how many connections.
    pub connections: u64,
    /// With a probability of 95%, their number is not further off than this.
    pub(crate) count_margin: f64,
}

/// Completed handshakes that two sources saw.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Agreement {
    /// `server` or `client`.
    pub role: Role,
    /// How many.
    pub handshakes: u64,
    /// Their CPU time by probes in the TLS library, in seconds: it is this that
    /// all other figures hold.
    pub library_cpu_seconds: f64,
    /// Their CPU time by socket calls, in seconds.
    pub socket_cpu_seconds: f64,
}
