//! What servers send in full handshakes: mostly their certificates.

use tlsprof_common::{Connection, Outcome, Resumption, Role};
use tlsprof_evidence::Handshake;
use tlsprof_evidence::hello::Facts;

use super::Moments;
use super::since::sums;

/// Segments that a sender may have under way before it hears of its peer (RFC 6928, 2;
/// Linux: `TCP_INIT_CWND`).
pub const INITIAL_WINDOW: u64 = 10;

/// What a service sent as a server in full handshakes, of connections that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flights {
    /// How many.
    pub count: u64,
    /// Their bytes together, whole handshakes without session tickets of TLS 1.3.
    pub bytes: u64,
    /// Those that did not fit into [`INITIAL_WINDOW`] segments of their connection.
    pub beyond: u64,
    /// Least round trip of the connections of these, where TCP measured one.
    pub round_trips: Moments,
}

sums!(Flights: count, bytes, beyond, round_trips);
sums!(Chains: count, bytes, certificates);

impl Flights {
    pub(super) fn record(&mut self, connection: &Connection) {
        let bytes = connection.handshake_sent();
        if connection.resumption != Resumption::None || bytes == 0 {
            return;
        }
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        let window = INITIAL_WINDOW * u64::from(connection.segment);
        if window == 0 || bytes <= window {
            return;
        }
        self.beyond += 1;
        if let Some(round_trip) = connection.round_trip {
            self.round_trips.record(round_trip);
        }
    }

    /// Mean length in bytes; 0 for none.
    pub fn mean(&self) -> f64 {
        match self.count {
            0 => 0.0,
            count => self.bytes as f64 / count as f64,
        }
    }
}

/// Certificates of a server that were seen in clear: up to TLS 1.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chains {
    /// Completed full handshakes whose certificates could be counted.
    pub count: u64,
    /// Lengths of their Certificate messages together, in bytes.
    pub bytes: u64,
    /// Certificates in these.
    pub certificates: u64,
}

impl Chains {
    pub(super) fn record(&mut self, handshake: &Handshake, facts: &Facts) {
        let server = handshake.role == Role::Server && handshake.outcome == Outcome::Completed;
        let Some(chain) = facts.server_chain.filter(|_| server) else {
            return;
        };
        if let Some(certificates) = chain.certificates {
            self.count += 1;
            self.bytes = self.bytes.saturating_add(chain.length as u64);
            self.certificates = self.certificates.saturating_add(certificates.into());
        }
    }
}
