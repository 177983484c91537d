//! Certificates that the agent asks for itself: which evidence leads to a
//! question, and which handshakes an answer is for.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::{Session, monotonic_now};
use crate::ask::ports::Ports;
use crate::ask::{Answer, Asker, Finding, Question};
use crate::discover::ProcRoot;
use crate::discover::table::ProcessTable;
use crate::evidence::hello::Opening;
use crate::evidence::{ConnectionId, Evidence, Handshake, Outcome, Resumption, Role, Source};

/// Most open connections whose port is remembered. Ids grow: the smallest is the
/// oldest.
const MOST_CONNECTIONS: usize = 65_536;

/// Questions to TLS ports, and what is known by their answers.
pub(super) struct Asking {
    asker: Asker,
    ports: Ports,
    /// Local port of connections to selected services.
    connections: BTreeMap<ConnectionId, u16>,
}

impl Asking {
    pub(super) fn start(proc: ProcRoot) -> std::io::Result<Self> {
        Ok(Self {
            asker: Asker::start(proc)?,
            ports: Ports::default(),
            connections: BTreeMap::new(),
        })
    }

    /// Whether this is of a connection that the agent made itself, on either side.
    pub(super) fn is_own(&self, evidence: &Evidence) -> bool {
        let connection = match evidence {
            Evidence::Handshake(handshake) => handshake.connection,
            Evidence::Opened(opening) => Some(opening.id),
            Evidence::Closed(connection) => Some(connection.id),
            _ => None,
        };
        connection.is_some_and(|id| self.asker.own().contains(id))
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
            Evidence::Handshake(handshake) if is_hidden(handshake) => {
                let process = handshake.process;
                if let Some(service) = table.service_of(process)
                    && table.is_selected(process)
                {
                    self.sign(service.as_str(), handshake, now);
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

    fn answered(&mut self, answer: Answer) {
        let learned = matches!(answer.finding, Finding::Key(_));
        match self.ports.answered(answer, Timestamp::now()) {
            Some(note) if learned => tracing::info!("{note}"),
            Some(note) => tracing::warn!("{note}"),
            None => {}
        }
    }

    fn sign(&mut self, service: &str, handshake: &mut Handshake, now: Duration) {
        let id = handshake.connection;
        let port = id.and_then(|id| self.connections.get(&id).copied());
        if let Some(port) = port
            && handshake.outcome == Outcome::Completed
            && begins_with_tls(handshake)
        {
            self.ports.seen(service, port, now);
        }
        if let Some(kind) = self.ports.signature(service, port) {
            handshake.signature = kind;
        }
    }
}

/// A full handshake of a server whose certificate only TLS 1.3 hides.
fn is_hidden(handshake: &Handshake) -> bool {
    handshake.source == Source::Socket
        && handshake.role == Role::Server
        && handshake.version == "TLS1.3"
        && handshake.resumption == Resumption::None
        && handshake.signature == "unknown"
}

/// A port where another protocol comes first would not understand the question.
fn begins_with_tls(handshake: &Handshake) -> bool {
    let facts = handshake.hello.as_ref();
    facts.is_some_and(|facts| facts.opening == Opening::default())
}

impl Session {
    /// Takes the answers that have come, and asks the next port.
    pub(super) fn ask(&mut self) {
        let Some(asking) = &mut self.asking else {
            return;
        };
        while let Ok(answer) = asking.asker.answer() {
            asking.answered(answer);
        }
        while let Some((service, port, number)) = asking.ports.next(monotonic_now()) {
            let services = self.table.services();
            let view = services.iter().find(|view| view.name.as_str() == service);
            let question = Question {
                number,
                port,
                processes: view.map_or_else(Vec::new, |view| view.processes.clone()),
            };
            if !asking.asker.ask(question) {
                let reason = "other ports take too long to answer".to_owned();
                let answer = Answer {
                    number,
                    finding: Finding::Nothing(reason),
                    connections: 0,
                    counted: 0,
                };
                asking.answered(answer);
            }
        }
    }

    /// Looks whether services that were asked began anew.
    pub(super) fn follow_asked(&mut self) {
        let Some(asking) = &mut self.asking else {
            return;
        };
        for service in self.table.services() {
            if let Some(main) = service.processes.first() {
                asking.ports.main_process(service.name.as_str(), *main);
            }
        }
    }

    /// What was learned by asking, and what was not.
    pub(super) fn notes_on_asking(&self) -> Vec<String> {
        let asking = self.asking.as_ref();
        asking.map_or_else(Vec::new, |asking| asking.ports.notes())
    }
}
