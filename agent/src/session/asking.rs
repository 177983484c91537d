//! Certificates that the agent asks for itself: which evidence leads to a
//! question, and which handshakes an answer is for.

use std::time::Duration;

use jiff::Timestamp;

use super::shared::monotonic_now;
use crate::ask::ports::Ports;
use crate::ask::{Answer, Asker, Finding, Question};
use tlsprof_common::Outcome;
use tlsprof_discover::ProcRoot;
use tlsprof_discover::table::ProcessTable;
use tlsprof_evidence::hello::Opening;
use tlsprof_evidence::{Evidence, Handshake};

/// Questions to TLS ports, and what is known by their answers.
pub(super) struct Asking {
    asker: Asker,
    ports: Ports,
}

impl Asking {
    pub(super) fn start(proc: ProcRoot) -> std::io::Result<Self> {
        Ok(Self {
            asker: Asker::start(proc)?,
            ports: Ports::default(),
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

    fn answered(&mut self, answer: Answer) {
        let learned = matches!(answer.finding, Finding::Key(_));
        match self.ports.answered(answer, Timestamp::now()) {
            Some(note) if learned => tracing::info!("{note}"),
            Some(note) => tracing::warn!("{note}"),
            None => {}
        }
    }

    /// Puts the kind of key into a full handshake that hides it, if an answer is
    /// there; else notes that there is something to ask.
    pub(super) fn sign(
        &mut self,
        service: &str,
        port: Option<u16>,
        handshake: &mut Handshake,
        now: Duration,
    ) {
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

    /// Takes the answers that have come, and asks the next port.
    pub(super) fn turn(&mut self, table: &ProcessTable<ProcRoot>) {
        while let Ok(answer) = self.asker.answer() {
            self.answered(answer);
        }
        while let Some((service, port, number)) = self.ports.next(monotonic_now()) {
            let services = table.services();
            let view = services.iter().find(|view| view.name.as_str() == service);
            let question = Question {
                number,
                port,
                processes: view.map_or_else(Vec::new, |view| view.processes.clone()),
            };
            if !self.asker.ask(question) {
                let reason = "other ports take too long to answer".to_owned();
                let answer = Answer {
                    number,
                    finding: Finding::Nothing(reason),
                    connections: 0,
                    counted: 0,
                };
                self.answered(answer);
            }
        }
    }

    /// Looks whether services that were asked began anew.
    pub(super) fn follow_restarts(&mut self, table: &ProcessTable<ProcRoot>) {
        for service in table.services() {
            if let Some(main) = service.processes.first() {
                self.ports.main_process(service.name.as_str(), *main);
            }
        }
    }

    /// What was learned by asking, and what was not.
    pub(super) fn notes(&self) -> Vec<String> {
        self.ports.notes()
    }
}

/// A port where another protocol comes first would not understand the question.
fn begins_with_tls(handshake: &Handshake) -> bool {
    let facts = handshake.hello.as_ref();
    facts.is_some_and(|facts| facts.opening == Opening::default())
}
