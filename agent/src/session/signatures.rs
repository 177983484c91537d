//! The kind of key with which a server signed, where TLS 1.3 hides it from all
//! but the step probes.

use std::collections::BTreeMap;
use std::time::Duration;

use super::learned::{Learned, Situation};
use tlsprof_common::{ConnectionId, Outcome, Resumption, Role};
use tlsprof_discover::ProcRoot;
use tlsprof_discover::table::ProcessTable;
use tlsprof_evidence::{Evidence, Handshake};

/// Most connections whose port is remembered: about 2 MB. Ids grow: the smallest is the oldest.
const MOST_CONNECTIONS: usize = 65_536;

/// What is known of signatures.
#[derive(Default)]
pub(super) struct Signatures {
    ports: Ports,
    learned: Learned,
}

/// Local ports of open connections to selected services whose handshake was not booked yet.
#[derive(Debug, Default)]
struct Ports(BTreeMap<ConnectionId, u16>);

impl Ports {
    fn remember(&mut self, id: ConnectionId, port: u16) {
        self.0.insert(id, port);
        if self.0.len() > MOST_CONNECTIONS {
            self.0.pop_first();
        }
    }

    fn take(&mut self, id: ConnectionId) -> Option<u16> {
        self.0.remove(&id)
    }
}

impl Signatures {
    /// Drops what is out of date.
    pub(super) fn forget(&mut self, now: Duration) {
        self.learned.forget(now);
    }

    /// Takes note of evidence that is about to be booked, and puts what is known
    /// into a handshake. What its client asked for is dropped.
    pub(super) fn take(
        &mut self,
        evidence: &mut Evidence,
        table: &ProcessTable<ProcRoot>,
        now: Duration,
    ) {
        match evidence {
            Evidence::Opened(opening) if opening.role == Role::Server => {
                if table.is_selected(opening.owner.process) {
                    self.ports.remember(opening.id, opening.port);
                }
            }
            Evidence::Closed(connection) => {
                self.ports.take(connection.id);
            }
            Evidence::Handshake(handshake) => {
                // A connection has one whose certificate is encrypted.
                let port = handshake.connection.and_then(|id| self.ports.take(id));
                if is_encrypted(handshake) && table.is_selected(handshake.process) {
                    self.learn(port, handshake, now);
                }
                // Nothing else needs it, and facts may be kept for long.
                if let Some(facts) = &mut handshake.hello {
                    facts.forget_certificate_request();
                }
            }
            _ => {}
        }
    }

    /// Learns from a handshake whose signature was measured; or fills in what
    /// others like it showed.
    fn learn(&mut self, port: Option<u16>, handshake: &mut Handshake, now: Duration) {
        let facts = handshake.hello.as_ref();
        let request = facts.and_then(|facts| facts.certificate_request());
        let (Some(port), Some(request), Outcome::Completed) = (port, request, handshake.outcome)
        else {
            return;
        };
        let situation = Situation {
            process: (handshake.process, handshake.process_start),
            port,
            request,
        };
        match handshake.signature {
            "unknown" => {
                let known = self.learned.signature(&situation, now);
                handshake.signature = known.unwrap_or(handshake.signature);
            }
            // A server that authenticates itself by an external key signs nothing.
            "none" | "other" => {}
            signature => self.learned.measured(situation, signature, now),
        }
    }
}

/// A full handshake of a server whose certificate only TLS 1.3 hides.
fn is_encrypted(handshake: &Handshake) -> bool {
    handshake.role == Role::Server
        && handshake.version == "TLS1.3"
        && handshake.resumption == Resumption::None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_bounded_and_the_oldest_go_first() {
        let mut ports = Ports::default();
        for id in (1..).take(MOST_CONNECTIONS + 1) {
            ports.remember(id, 443);
        }
        assert_eq!(ports.0.len(), MOST_CONNECTIONS);
        assert_eq!(ports.take(1), None);
        assert_eq!(ports.take(2), Some(443));
        assert_eq!(ports.0.len(), MOST_CONNECTIONS - 1);
    }
}
