//! Handshakes as they come from two sources.

use std::time::Duration;

use super::Joiner;
use super::dialogue::Dialogue;
use super::process::Span;
use super::state::{Unpaired, Why};
use crate::Handshake;
use tlsprof_common::{ConnectionId, Outcome, Pid, Source};

impl Joiner {
    pub(super) fn handshake(
        &mut self,
        handshake: Box<Handshake>,
        at: Duration,
        probed: impl Fn(Pid) -> bool,
    ) {
        let span = Span::of(&handshake, at);
        match handshake.source {
            Source::Socket => {
                // An object that has it is one of a probed library, although the process may
                // be so new that its images are not known yet.
                let named = handshake.named;
                let process = self.process(handshake.process, |pid| named || probed(pid));
                let probed = process.map_or(named, |process| process.probed);
                self.socket(handshake, span, probed && self.expects_libraries);
            }
            Source::Library => match handshake.connection.filter(|id| self.is_free(*id)) {
                Some(id) => self.library_on(id, handshake, span),
                None => self.library_somewhere(handshake, span),
            },
        }
    }

    /// Whether no library handshake has named a connection yet.
    fn is_free(&self, id: ConnectionId) -> bool {
        let named = self.settled.get(id).is_some_and(|settled| settled.named);
        !named && !self.unfinished.contains_key(&id)
    }

    fn library_on(&mut self, id: ConnectionId, handshake: Box<Handshake>, span: Span) {
        // Socket calls are seen, or it would know no connection.
        let process = self.process(handshake.process, |_| true);
        if process.is_some_and(|process| process.was_booked_on(id, span)) {
            if let Some(settled) = self.settled.get_mut(id) {
                settled.named = true;
            }
            return;
        }
        let twin = self.sockets.get(&id).copied();
        let mut twin = twin.and_then(|number| self.release(number));
        let speaking = self.dialogues.get(id).map(Dialogue::is_underway);
        let closed = twin.as_ref().is_some_and(|twin| twin.closed);
        if let Some(twin) = twin.take_if(|twin| end_unseen(&handshake, &twin.handshake)) {
            return self.book_on(id, twin.handshake, closed, None);
        }
        let compared = twin.is_some();
        if let Some(twin) = twin {
            let known = self.dialogues.get(id).and_then(Dialogue::facts);
            let known = known.map(|facts| (facts.version(), facts.resumption()));
            self.compare(Unpaired::of(&handshake), twin.handshake, known);
        }
        let completed = handshake.outcome == Outcome::Completed;
        if speaking == Some(true) && !completed && !closed {
            let number = self.hold(handshake, span, Why::Alerts { compared });
            self.unfinished.insert(id, number);
        } else {
            let unpaired = (!compared).then(|| Unpaired::of(&handshake));
            self.book_on(id, handshake, closed, unpaired);
        }
    }

    fn library_somewhere(&mut self, handshake: Box<Handshake>, span: Span) {
        if !self.was_booked(&handshake, span) {
            self.wait_for_twin(handshake, span);
        }
    }

    pub(super) fn was_booked(&mut self, handshake: &Handshake, span: Span) -> bool {
        let process = self.processes.get_mut(handshake.process);
        process.is_some_and(|process| process.was_booked(handshake, span))
    }

    fn wait_for_twin(&mut self, handshake: Box<Handshake>, span: Span) {
        let (pid, role) = (handshake.process, handshake.role);
        if self.processes.get(pid).is_none() {
            return self.book(handshake, None);
        }
        let number = self.hold(handshake, span, Why::Twin);
        if let Some(process) = self.processes.get_mut(pid) {
            process.libraries.insert((role, number));
        }
    }

    fn socket(&mut self, handshake: Box<Handshake>, span: Span, probed: bool) {
        let id = handshake.connection;
        if let Some(settled) = id.and_then(|id| self.settled.get_mut(id))
            && let Some(library) = settled.unpaired.take()
        {
            let known = (settled.version, settled.resumption);
            return self.compare(library, handshake, Some(known));
        }
        let unfinished = id.and_then(|id| self.unfinished.get(&id));
        if let Some(held) = unfinished.and_then(|number| self.held.get_mut(number))
            && held.why == (Why::Alerts { compared: false })
        {
            held.why = Why::Alerts { compared: true };
            if end_unseen(&held.handshake, &handshake) {
                held.handshake = handshake;
            }
            return;
        }
        if !probed {
            return match id {
                Some(id) => self.book_on(id, handshake, false, None),
                None => self.book(handshake, None),
            };
        }
        let (pid, role, named) = (handshake.process, handshake.role, handshake.named);
        let number = self.hold(handshake, span, Why::Twin);
        if !named && let Some(process) = self.processes.get_mut(pid) {
            process.sockets.insert((role, number));
        }
        if let Some(id) = id {
            self.sockets.entry(id).or_insert(number);
        }
    }
}

/// Rule 7.
fn end_unseen(library: &Handshake, socket: &Handshake) -> bool {
    library.outcome == Outcome::Abandoned && socket.outcome == Outcome::Completed
}
