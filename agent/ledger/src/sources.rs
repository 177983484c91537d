//! What depends on the source of a handshake: parts that only socket calls
//! separate, figures that are not whole, and how far two sources agree.

use std::collections::BTreeMap;
use std::time::Duration;

use tlsprof_common::{Connection, Source};
use tlsprof_evidence::{Estimate, Handshake};

use super::moments::MARGIN;
use super::since::{Since, sums};
use super::{OTHER, bounded};

/// Handshakes that only socket calls showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketAccount {
    /// How many.
    pub handshakes: u64,
    /// Their CPU time, of which no step is known.
    pub cpu: Duration,
    /// The part of it up to the server's first answer: in a full handshake of a
    /// server, key generation and signature.
    pub first_flight: Duration,
    /// The part from the peer's next bytes to the end: key agreement in TLS 1.2.
    pub last_flight: Duration,
    /// Those of them that another thread answered than the one that read the socket, where
    /// further threads may have worked as well: their CPU time is a lower bound.
    pub offloaded: u64,
}

sums!(SocketAccount: handshakes, cpu, first_flight, last_flight, offloaded);

impl SocketAccount {
    pub(super) fn record(&mut self, handshake: &Handshake) {
        if handshake.source != Source::Socket {
            return;
        }
        self.offloaded += u64::from(handshake.offloaded);
        self.handshakes += 1;
        self.cpu = self.cpu.saturating_add(bounded(handshake.cpu));
        let [first, last] = handshake.flights.unwrap_or_default();
        self.first_flight = self.first_flight.saturating_add(bounded(first));
        self.last_flight = self.last_flight.saturating_add(bounded(last));
    }
}

/// Handshakes that are booked for connections that were not followed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimated {
    /// How many.
    pub handshakes: u64,
    variances: Estimate,
}

impl Since for Estimated {
    fn since(&self, earlier: &Self) -> Self {
        let (now, before) = (&self.variances, &earlier.variances);
        Self {
            handshakes: self.handshakes.since(&earlier.handshakes),
            variances: Estimate {
                count_variance: now.count_variance.since(&before.count_variance),
                cpu_variance: now.cpu_variance.since(&before.cpu_variance),
            },
        }
    }

    fn is_zero(&self) -> bool {
        self.handshakes == 0
    }
}

impl Estimated {
    pub(super) fn record(&mut self, handshake: &Handshake) {
        let Some(estimate) = handshake.estimate else {
            return;
        };
        self.handshakes += 1;
        self.variances.count_variance += estimate.count_variance;
        self.variances.cpu_variance += estimate.cpu_variance;
    }

    /// Half the 95% range of their number.
    pub fn count_margin(&self) -> f64 {
        MARGIN * self.variances.count_variance.sqrt()
    }

    /// Half the 95% range of their CPU time, in seconds.
    pub fn cpu_margin(&self) -> f64 {
        MARGIN * self.variances.cpu_variance.sqrt()
    }
}

/// Completed handshakes that two sources saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// How many.
    pub handshakes: u64,
    /// Their CPU time by probes in the TLS library, which is what is booked.
    pub library: Duration,
    /// Their CPU time by socket calls.
    pub socket: Duration,
}

/// Payload of TLS connections after their handshakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplicationBytes {
    /// Received, in bytes.
    pub received: u64,
    /// Sent, in bytes.
    pub sent: u64,
}

sums!(Agreement: handshakes, library, socket);
sums!(ApplicationBytes: received, sent);

/// Cipher suites of which bytes are kept apart, for each service and role: no
/// server has as many, but a hostile peer may negotiate each that it has.
const CIPHERS: usize = 32;

/// By cipher suite.
pub type Application = BTreeMap<&'static str, ApplicationBytes>;

/// Books what a TLS connection carried after its handshake.
pub(super) fn record_application(kept: &mut Application, connection: &Connection, limit: usize) {
    let (received, sent) = (connection.application_received, connection.application_sent);
    if received == 0 && sent == 0 {
        return;
    }
    let known = kept.len() < limit.min(CIPHERS) || kept.contains_key(connection.cipher);
    let cipher = if known { connection.cipher } else { OTHER };
    let bytes = kept.entry(cipher).or_default();
    bytes.received = bytes.received.saturating_add(received);
    bytes.sent = bytes.sent.saturating_add(sent);
}
