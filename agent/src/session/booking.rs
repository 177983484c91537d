//! Evidence to its service's account.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;
use std::vec::Drain;

use super::cohorts::{Cohorts, Mode};
use super::shared::{monotonic_now, write};
use super::signatures::Signatures;
use super::targets::Targets;
use super::whose::{actor, is_ignored, mark_foreign_issuers};
use super::window::Window;
use tlsprof_attach::registry::Registry;
use tlsprof_common::{ConnectionId, Loss, Pid, ProcessEvent, Source};
use tlsprof_discover::ProcRoot;
use tlsprof_discover::table::ProcessTable;
use tlsprof_evidence::Evidence;
use tlsprof_evidence::decode::{decode, untold_opening};
use tlsprof_evidence::join::Joiner;
use tlsprof_kernel::loaded::Loaded;
use tlsprof_kernel::record::{self, Record};
use tlsprof_ledger::{Ledger, SharedLedger};

/// Takes evidence as it comes, joins what belongs together, and books it in the ledger.
pub(super) struct Bookkeeper {
    joiner: Joiner,
    window: Window,
    signatures: Signatures,
    cohorts: Cohorts,
    undecodable: u64,
}

/// What evidence brought beside the accounts.
pub(super) struct News {
    /// Processes that have ended, with the time.
    pub(super) ended: BTreeMap<Pid, u64>,
    /// A process was found to listen on the selected port.
    pub(super) appeared: bool,
    /// The kernel side has no more.
    pub(super) all_taken: bool,
}

impl Bookkeeper {
    /// `estimates`: socket calls may be seen in windows only, later.
    pub(super) fn new(estimates: bool) -> Self {
        Self {
            joiner: Joiner::default(),
            window: Window::default(),
            signatures: Signatures::default(),
            cohorts: Cohorts::new(estimates),
            undecodable: 0,
        }
    }

    /// The window of the profile.
    pub(super) const fn window(&mut self) -> &mut Window {
        &mut self.window
    }

    /// What is followed is in this mode from that time on; all evidence of the one before is taken.
    /// Of `cut` connections the handshakes were not followed to their end.
    pub(super) fn go_over(
        &mut self,
        (mode, at): (Mode, Duration),
        cut: &[ConnectionId],
        targets: &mut Targets,
        ledger: &SharedLedger,
        see: &mut impl FnMut(&str, &Evidence),
    ) {
        self.flush(targets, ledger, see);
        let mut ledger = write(ledger);
        self.cohorts
            .go_over(mode, at, cut, &mut |service, evidence| {
                book(&mut ledger, service, evidence, see);
            });
    }

    /// How long the window has been open.
    pub(super) fn elapsed(&self, now: Duration) -> Duration {
        self.window.length(now)
    }

    /// Records that could not be decoded.
    pub(super) const fn undecodable(&self) -> u64 {
        self.undecodable
    }

    /// What the joiner lost for that reason.
    pub(super) fn lost(&self, loss: Loss) -> u64 {
        self.joiner.lost(loss)
    }

    /// Books all that the kernel side has.
    pub(super) fn take(
        &mut self,
        loaded: &mut Loaded,
        targets: &mut Targets,
        ledger: &SharedLedger,
        see: &mut impl FnMut(&str, &Evidence),
    ) -> News {
        let now = monotonic_now();
        let mut ledger = write(ledger);
        let mut undecodable = 0;
        let mut ended = targets.take_ended();
        let mut desk = self.desk(targets, &mut ledger);
        desk.books.advance(now, see);
        let calls_seen = loaded.connections.calls().is_ok();
        let all_taken = loaded.drain(|bytes| {
            let record = record::decode(bytes);
            if let Some((opened, at)) = record.as_ref().and_then(untold_opening) {
                desk.take(opened, Duration::from_nanos(at), see);
            }
            let decoded = record
                .as_ref()
                .map(|record| (decode(record), record.time()));
            let Some((Some(mut evidence), time)) = decoded else {
                undecodable += 1;
                return;
            };
            if let Evidence::Process(ProcessEvent::Exit { process, .. }) = &evidence {
                ended.insert(*process, time);
            }
            if !calls_seen {
                forget_turns(&mut evidence);
            }
            desk.take(evidence, Duration::from_nanos(time), see);
        });
        desk.take_abandoned(loaded, &ended, see);
        if all_taken {
            desk.joiner.expect_libraries(desk.registry.is_probing());
            desk.advance(now, see);
        }
        let appeared = desk.appeared;
        self.undecodable += undecodable;
        News {
            ended,
            appeared,
            all_taken,
        }
    }

    /// Books the handshakes that still wait for another source: no more evidence
    /// of them is expected.
    pub(super) fn flush(
        &mut self,
        targets: &mut Targets,
        ledger: &SharedLedger,
        see: &mut impl FnMut(&str, &Evidence),
    ) {
        let mut ledger = write(ledger);
        self.desk(targets, &mut ledger).flush(monotonic_now(), see);
    }

    fn desk<'a>(&'a mut self, targets: &'a mut Targets, ledger: &'a mut Ledger) -> Desk<'a> {
        Desk {
            registry: &targets.registry,
            joiner: &mut self.joiner,
            books: Books {
                window: &mut self.window,
                signatures: &mut self.signatures,
                cohorts: &mut self.cohorts,
                table: &mut targets.table,
                ledger,
            },
            appeared: false,
        }
    }
}

/// Where evidence is put together and booked.
struct Desk<'a> {
    registry: &'a Registry,
    joiner: &'a mut Joiner,
    books: Books<'a>,
    appeared: bool,
}

/// Where complete evidence goes.
struct Books<'a> {
    window: &'a mut Window,
    signatures: &'a mut Signatures,
    cohorts: &'a mut Cohorts,
    table: &'a mut ProcessTable<ProcRoot>,
    ledger: &'a mut Ledger,
}

impl Desk<'_> {
    /// Takes evidence of that time, and books what is complete with it.
    fn take(
        &mut self,
        mut evidence: Evidence,
        at: Duration,
        see: &mut impl FnMut(&str, &Evidence),
    ) {
        // Before anything else of that connection.
        if let Evidence::Opened(opening) = &evidence {
            self.appeared |= self.books.table.follow_connection(opening);
        }
        let process = match &evidence {
            Evidence::Hello(chunk) => Some(chunk.process),
            Evidence::Handshake(handshake) => Some(handshake.process),
            _ => None,
        };
        let table = &*self.books.table;
        if process.is_some_and(|process| is_ignored(table, process)) {
            return;
        }
        if let Evidence::Handshake(handshake) = &mut evidence
            && handshake.source == Source::Library
        {
            let hidden = |image| self.registry.hides_steps(image);
            if table.maps(handshake.process, hidden) {
                handshake.forget_steps();
            }
        }
        let probed = |process| {
            let is_profiled = |image| self.registry.is_profiled(image);
            table.maps(process, is_profiled)
        };
        let ready = self.joiner.take(evidence, at, probed);
        self.books.enter(ready, at, see);
    }

    /// Takes the handshakes that were under way in processes that have ended, each with
    /// the time of the end.
    fn take_abandoned(
        &mut self,
        loaded: &mut Loaded,
        ended: &BTreeMap<Pid, u64>,
        see: &mut impl FnMut(&str, &Evidence),
    ) {
        if ended.is_empty() {
            return;
        }
        for event in loaded.abandon(ended) {
            let time = Duration::from_nanos(event.header.time);
            if let Some(evidence) = decode(&Record::Handshake(event)) {
                self.take(evidence, time, see);
            }
        }
    }

    /// Books what waited too long: all evidence up to `now` was taken.
    fn advance(&mut self, now: Duration, see: &mut impl FnMut(&str, &Evidence)) {
        let ready = self.joiner.advance(now);
        self.books.enter(ready, now, see);
    }

    /// Books what still waits.
    fn flush(&mut self, now: Duration, see: &mut impl FnMut(&str, &Evidence)) {
        let ready = self.joiner.flush();
        self.books.enter(ready, now, see);
    }
}

impl Books<'_> {
    /// Says what time it is, up to the end of the window.
    fn advance(&mut self, now: Duration, see: &mut impl FnMut(&str, &Evidence)) {
        self.ledger.advance(self.window.clock(now));
        self.signatures.forget(self.ledger.now());
        self.cohorts.pay(now, &mut |service, evidence| {
            book(self.ledger, service, evidence, see);
        });
    }

    /// Books what belongs to the window. `at` is the time of openings and of changes among
    /// processes, which nothing holds up; the rest has its own.
    fn enter(
        &mut self,
        ready: Drain<'_, Evidence>,
        at: Duration,
        see: &mut impl FnMut(&str, &Evidence),
    ) {
        for mut evidence in ready {
            self.signatures
                .take(&mut evidence, self.table, self.ledger.now());
            let admitted = self.window.admits(&mut evidence, at);
            if let Evidence::Process(event) = &evidence {
                self.table.apply(event);
            }
            if admitted {
                self.find_owner(&mut evidence, see);
                mark_foreign_issuers(self.table, &mut evidence);
                self.book(evidence, see);
            }
        }
    }

    /// Nobody may have read, written or closed a connection that the peer has reset, where
    /// socket calls are not seen: it is that of the service on its port, and was opened.
    fn find_owner(&mut self, evidence: &mut Evidence, see: &mut impl FnMut(&str, &Evidence)) {
        if let Evidence::Closed(connection) = evidence
            && let Some(opening) = self.cohorts.opening_of(connection)
        {
            connection.owner = Some(opening.owner.clone());
            self.book(Evidence::Opened(opening), see);
        }
    }

    /// Books what happened to a process under its service, if that is selected.
    fn book(&mut self, mut evidence: Evidence, see: &mut impl FnMut(&str, &Evidence)) {
        if let Evidence::Process(event) = &evidence {
            return book_process(self.table, self.ledger, event);
        }
        let Some((process, comm)) = actor(&evidence) else {
            if matches!(evidence, Evidence::Closed(_)) {
                self.ledger.record_unprofiled(&evidence);
                self.ledger.record_ownerless();
            }
            return;
        };
        if is_ignored(self.table, process) {
            return self.ledger.record_unprofiled(&evidence);
        }
        // A process that the table never saw ended while it was being filled: its name is the
        // best there is.
        let named = self.table.service_of(process);
        let service = match named {
            Some(named) => Cow::Borrowed(named.as_str()),
            None => Cow::Owned(comm.to_owned()),
        };
        let service = self.ledger.note_booked(&service);
        if let Evidence::Closed(connection) = &mut evidence {
            self.cohorts.closed(service, connection);
        }
        book(self.ledger, service, &evidence, see);
        match &evidence {
            Evidence::Handshake(handshake) => self.cohorts.handshake(service, handshake),
            Evidence::Opened(opening) => self.cohorts.opened(service, opening, &mut |evidence| {
                book(self.ledger, service, evidence, see);
            }),
            _ => {}
        }
    }
}

/// Books what happened to a service, and hands it to `see`. The name is the one that the service
/// is booked under.
fn book(
    ledger: &mut Ledger,
    service: &str,
    evidence: &Evidence,
    see: &mut impl FnMut(&str, &Evidence),
) {
    ledger.book(service, evidence);
    see(service, evidence);
}

/// Books a process that begins.
fn book_process(table: &ProcessTable<ProcRoot>, ledger: &mut Ledger, event: &ProcessEvent) {
    let process = match event {
        ProcessEvent::Fork { child, .. } => *child,
        ProcessEvent::Exec { process, .. } => *process,
        ProcessEvent::Exit { .. } => return,
    };
    if table.is_selected(process)
        && let Some(service) = table.service_of(process)
    {
        ledger.record_process(service.as_str(), event);
    }
}

/// Where socket calls are not seen, no turn is not the same as none.
fn forget_turns(evidence: &mut Evidence) {
    if let Evidence::Closed(connection) = evidence
        && let Some(whole) = &mut connection.whole
    {
        whole.turns = None;
    }
}

#[cfg(test)]
mod tests;
