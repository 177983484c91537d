//! The kind of key with which a server signed, where TLS 1.3 hides it from all
//! but the step probes.

use std::collections::BTreeMap;
use std::time::Duration;

use super::asking::Asking;
use super::learned::{Learned, Situation};
use crate::discover::ProcRoot;
use crate::discover::table::ProcessTable;
use crate::evidence::{ConnectionId, Evidence, Handshake, Outcome, Resumption, Role};

/// Most open connections whose port is remembered. Ids grow: the smallest is the
/// oldest.
const MOST_CONNECTIONS: usize = 65_536;

/// What is known of signatures, and the ways to learn it.
#[derive(Default)]
pub(super) struct Signatures {
    /// Local port of connections to selected services.
    connections: BTreeMap<ConnectionId, u16>,
    learned: Learned,
    /// Questions to TLS ports, if the user wants them.
    pub asking: Option<Asking>,
}

impl Signatures {
    pub(super) fn new(asking: Option<Asking>) -> Self {
        Self {
            asking,
            ..Self::default()
        }
    }

    /// Whether this is of a connection that the agent made itself.
    pub(super) fn is_own(&self, evidence: &Evidence) -> bool {
        let asking = self.asking.as_ref();
        asking.is_some_and(|asking| asking.is_own(evidence))
    }

    /// Takes note of evidence that is about to be booked, and puts what is known
    /// into a handshake.
    pub(super) fn take(
        &mut self,
        evidence: &mut Evidence,
        table: &ProcessTable<ProcRoot>,
        now: Duration,
    ) {
        match evidence {
            Evidence::Opened(opening) if opening.role == Role::Server => {
                if table.is_selected(opening.owner.process) {
                    self.remember(opening.id, opening.port);
                }
            }
            Evidence::Closed(connection) => {
                self.connections.remove(&connection.id);
            }
            Evidence::Handshake(handshake)
                if is_encrypted(handshake) && table.is_selected(handshake.process) =>
            {
                let port = self.port(handshake);
                self.learn(port, handshake, now);
                if let Some(asking) = &mut self.asking
                    && let Some(service) = table.service_of(handshake.process)
                    && handshake.signature == "unknown"
                {
                    asking.sign(service.as_str(), port, handshake, now);
                }
            }
            _ => {}
        }
    }

    fn remember(&mut self, id: ConnectionId, port: u16) {
        self.connections.insert(id, port);
        if self.connections.len() > MOST_CONNECTIONS {
            self.connections.pop_first();
        }
    }

    fn port(&self, handshake: &Handshake) -> Option<u16> {
        self.connections.get(&handshake.connection?).copied()
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
