//! What is booked, and compared.

use super::Joiner;
use super::dialogue::Dialogue;
use super::state::{Settled, Unpaired};
use crate::hello::Facts;
use crate::{Comparison, Evidence, Handshake};
use tlsprof_common::{ConnectionId, Loss, Outcome, Resumption, Source};

impl Joiner {
    /// Books the handshake of a connection, with what its hellos say.
    pub(super) fn book_on(
        &mut self,
        id: ConnectionId,
        handshake: Box<Handshake>,
        closed: bool,
        unpaired: Option<Unpaired>,
    ) {
        let dialogue = self.end_dialogue(id);
        let facts = dialogue.and_then(Dialogue::into_facts);
        let facts_known = facts.as_deref();
        if !closed {
            let settled = Settled {
                cipher: facts_known.map_or("unknown", Facts::cipher),
                version: facts_known.map_or("unknown", Facts::version),
                resumption: facts_known.map_or(Resumption::Unknown, Facts::resumption),
                may_be_http2: facts_known.map(Facts::may_be_http2),
                named: handshake.source == Source::Library,
                unpaired,
            };
            // A second handshake does not take away what the first one showed.
            match self.settled.get_mut(id) {
                Some(known) if facts.is_some() => *known = settled,
                Some(known) => {
                    known.named |= settled.named;
                    known.unpaired = settled.unpaired;
                }
                None => {
                    if self.settled.insert(id, settled).is_some() {
                        self.lose(Loss::HelloTableFull);
                    }
                }
            }
        }
        self.book(handshake, facts);
    }

    pub(super) fn book(&mut self, mut handshake: Box<Handshake>, facts: Option<Box<Facts>>) {
        if let Some(mut facts) = facts {
            let Handshake { role, process, .. } = *handshake;
            self.sessions.judge(&mut facts, role, process, self.now);
            facts.apply_to(&mut handshake);
            let socket = handshake.source == Source::Socket;
            if socket && facts.fatal_alert().is_some() {
                handshake.outcome = Outcome::Failed;
            }
            handshake.hello = Some(facts);
        }
        if handshake.source == Source::Socket {
            self.finish(&mut handshake);
        }
        self.ready.push(Evidence::Handshake(handshake));
    }

    pub(super) fn finish(&mut self, handshake: &mut Handshake) {
        if !handshake.is_timed() {
            handshake.offloaded = true;
            return;
        }
        if let Some(process) = self.processes.get_mut(handshake.process) {
            process.judge_handover(handshake);
            process.finish(handshake);
        }
    }

    /// Both sources saw a handshake. What did not complete is not compared: the
    /// sources differ in when such a handshake ends.
    pub(super) fn compare(
        &mut self,
        library: Unpaired,
        mut socket: Box<Handshake>,
        known: Option<(&'static str, Resumption)>,
    ) {
        if !library.completed || socket.outcome != Outcome::Completed {
            return;
        }
        if let Some((version, resumption)) = known {
            socket.version = version;
            socket.resumption = resumption;
        }
        self.finish(&mut socket);
        if socket.offloaded {
            return;
        }
        self.ready.push(Evidence::Compared(Box::new(Comparison {
            process: socket.process,
            comm: std::mem::take(&mut socket.comm),
            role: socket.role,
            began: library.began,
            connection: socket.connection,
            library: library.cpu,
            socket: socket.cpu,
        })));
    }
}
