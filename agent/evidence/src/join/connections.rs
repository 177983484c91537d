//! What is kept of connections: from their first bytes to their end.

use super::Joiner;
use super::dialogue::Dialogue;
use crate::hello::GaveUp;
use crate::{Chunk, Evidence};
use tlsprof_common::{Connection, ConnectionId, Loss, Pid};

impl Joiner {
    pub(super) fn hear(&mut self, chunk: &Chunk, probed: impl Fn(Pid) -> bool) {
        let id = chunk.connection;
        if self.settled.get(id).is_some() {
            return;
        }
        if self.dialogues.get(id).is_none() {
            self.process(chunk.process, probed);
            let new = Dialogue::new(chunk);
            self.charged += new.charge();
            let evicted = self.dialogues.insert(id, new);
            self.evicted(evicted);
        }
        let Some(dialogue) = self.dialogues.get_mut(id) else {
            return;
        };
        let before = dialogue.charge();
        let gave_up = dialogue.hear(chunk);
        let over = !dialogue.is_underway();
        self.charged = self.charged + dialogue.charge() - before;
        if gave_up == Some(GaveUp::Gap) {
            self.lose(Loss::HelloGap);
        }
        if over && let Some(waiting) = self.unfinished.get(&id).copied() {
            self.resolve(waiting);
        }
        while self.charged > self.limits.dialogue_bytes {
            let evicted = self.dialogues.pop_oldest();
            if evicted.is_none() {
                break;
            }
            self.evicted(evicted);
        }
    }

    fn evicted(&mut self, dialogue: Option<Dialogue>) {
        if let Some(dialogue) = dialogue {
            self.charged -= dialogue.charge();
            if dialogue.is_underway() || dialogue.facts().is_some() {
                self.lose(Loss::HelloTableFull);
            }
        }
    }

    pub(super) fn end_dialogue(&mut self, id: ConnectionId) -> Option<Dialogue> {
        let dialogue = self.dialogues.remove(id)?;
        self.charged -= dialogue.charge();
        Some(dialogue)
    }

    pub(super) fn closed(&mut self, mut connection: Box<Connection>) {
        let id = connection.id;
        if let Some(waiting) = self.unfinished.get(&id).copied() {
            self.resolve(waiting);
        }
        let settled = self.settled.remove(id);
        if let Some(settled) = settled {
            connection.cipher = settled.cipher;
            connection.resumption = settled.resumption;
            connection.may_be_http2 = settled.may_be_http2;
        } else if let Some(facts) = self.dialogues.get(id).and_then(Dialogue::facts) {
            connection.cipher = facts.cipher();
            connection.resumption = facts.resumption();
            connection.may_be_http2 = Some(facts.may_be_http2());
        }
        let waiting = self.sockets.get(&id).and_then(|it| self.held.get_mut(it));
        match waiting {
            Some(socket) => socket.closed = true,
            None => drop(self.end_dialogue(id)),
        }
        self.ready.push(Evidence::Closed(connection));
    }
}
