//! Evidence to its service's account.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::time::Duration;
use std::vec::Drain;

use super::signatures::Signatures;
use super::window::Window;
use super::{Session, monotonic_now};
use crate::attach::registry::Registry;
use crate::discover::ProcRoot;
use crate::discover::process::CpuTime;
use crate::discover::service::ServiceName;
use crate::discover::table::{ProcessTable, ServiceView};
use crate::evidence::decode::decode;
use crate::evidence::hello::Giver;
use crate::evidence::join::Joiner;
use crate::evidence::{Evidence, Pid, ProcessEvent, Source};
use crate::kernel::load::Loaded;
use crate::kernel::record::Record;
use crate::ledger::{Ledger, OTHER};

/// Where evidence is put together and booked.
pub(super) struct Desk<'a> {
    registry: &'a Registry,
    joiner: &'a mut Joiner,
    pub books: Books<'a>,
    /// A process was found to listen on the selected port.
    pub appeared: bool,
}

/// Where complete evidence goes.
pub(super) struct Books<'a> {
    window: &'a mut Window,
    signatures: &'a mut Signatures,
    table: &'a mut ProcessTable<ProcRoot>,
    ledger: &'a mut Ledger,
}

impl Desk<'_> {
    /// Takes evidence of that time, and books what is complete with it.
    pub(super) fn take(
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
    pub(super) fn take_abandoned(
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
    pub(super) fn advance(&mut self, now: Duration, see: &mut impl FnMut(&str, &Evidence)) {
        let ready = self.joiner.advance(now);
        self.books.enter(ready, now, see);
    }

    /// Books what still waits.
    pub(super) fn flush(&mut self, now: Duration, see: &mut impl FnMut(&str, &Evidence)) {
        let ready = self.joiner.flush();
        self.books.enter(ready, now, see);
    }
}

impl Books<'_> {
    /// Says what time it is, up to the end of the window.
    pub(super) fn advance(&mut self, now: Duration) {
        self.ledger.advance(self.window.clock(now));
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
            if self.signatures.is_own(&evidence) {
                continue;
            }
            self.signatures
                .take(&mut evidence, self.table, self.ledger.now());
            let admitted = self.window.admits(&mut evidence, at);
            if let Evidence::Process(event) = &evidence {
                self.table.apply(event);
            }
            if admitted {
                tell_strangers(self.table, &mut evidence);
                book(self.table, self.ledger, &evidence, see);
            }
        }
    }
}

/// Who gave the session that a client brought may be of another service.
fn tell_strangers(table: &ProcessTable<ProcRoot>, evidence: &mut Evidence) {
    let Evidence::Handshake(handshake) = evidence else {
        return;
    };
    let process = handshake.process;
    let origin = handshake.hello.as_mut().and_then(|it| it.origin.as_mut());
    if let Some(origin) = origin
        && origin.giver == Giver::Sibling
        && table.service_of(origin.process) != table.service_of(process)
    {
        origin.giver = Giver::Stranger;
    }
}

/// A process that the table knows, and that is not selected; or one that it does not know,
/// where the user has selected some: those had ended before.
fn is_ignored(table: &ProcessTable<ProcRoot>, process: Pid) -> bool {
    match table.service_of(process) {
        Some(_) => !table.is_selected(process),
        None => !table.selects_all(),
    }
}

/// Books what happened to a process under its service, if that is selected, and hands it
/// to `see` with the name that it is booked under.
fn book(
    table: &ProcessTable<ProcRoot>,
    ledger: &mut Ledger,
    evidence: &Evidence,
    see: &mut impl FnMut(&str, &Evidence),
) {
    let (process, comm) = match evidence {
        Evidence::Process(event) => return book_process(table, ledger, event),
        Evidence::Hello(_) => return,
        Evidence::Handshake(handshake) => (handshake.process, &handshake.comm),
        Evidence::Compared(comparison) => (comparison.process, &comparison.comm),
        Evidence::Opened(opening) => (opening.owner.process, &opening.owner.comm),
        Evidence::Closed(connection) => match &connection.owner {
            Some(owner) => (owner.process, &owner.comm),
            None => {
                ledger.record_unprofiled(evidence);
                return ledger.record_ownerless();
            }
        },
    };
    if is_ignored(table, process) {
        return ledger.record_unprofiled(evidence);
    }
    // A process that the table never saw ended while it was being filled: its name is the
    // best there is.
    let service = table
        .service_of(process)
        .map_or(comm.as_str(), ServiceName::as_str);
    ledger.book(service, evidence);
    see(ledger.booked_name(service), evidence);
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
pub(super) fn forget_turns(evidence: &mut Evidence) {
    if let Evidence::Closed(connection) = evidence
        && let Some(whole) = &mut connection.whole
    {
        whole.turns = None;
    }
}

impl Session {
    /// CPU time counts from here on: what services used while probes were being attached
    /// was neither probed nor sampled.
    pub(super) fn begin_cpu(&mut self) {
        self.table.read_cpu(|_| true);
        let services = self.table.services();
        let names = services.iter().map(|service| service.name.as_str());
        self.cpu_before = names
            .map(|name| (name.to_owned(), self.table.cpu_since_start(name)))
            .collect();
        self.cpu_read = monotonic_now();
    }

    /// Books what the kernel accounted to the services since the last time, but for
    /// processes that hardly ran: these follow within seconds, or at the end.
    pub(super) fn book_cpu(&mut self) {
        let wanted = self.readings.begin();
        // Without samples nothing tells who ran.
        let all = self.loaded.samples.is_err();
        self.table.read_cpu(|pid| all || wanted(pid));
        self.book_cpu_as_read();
    }

    /// Books what was read last.
    pub(super) fn book_cpu_as_read(&mut self) {
        self.cpu_read = monotonic_now();
        let mut names = self.services_worth_booking();
        // Services without live processes may have ended since the last time, or have come
        // and gone since then.
        names.extend(self.cpu_booked.keys().cloned());
        let known = self.ledger();
        let known_names = known.services().map(|(name, _)| name);
        // What the table keeps under that name was booked under its own while it lived.
        names.extend(known_names.filter(|name| *name != OTHER).map(str::to_owned));
        drop(known);
        if self.named {
            names.extend(self.cpu_before.keys().cloned());
        }
        self.book_samples(&names);
        let used = names.into_iter().map(|name| {
            let total = self.table.cpu_since_start(&name);
            let before = || self.cpu_before.get(&name).copied().unwrap_or_default();
            let booked = self.cpu_booked.entry(name.clone()).or_insert_with(before);
            let new = total.since(*booked);
            *booked = total;
            (name, new)
        });
        // Before the ledger is locked: it takes a look at each process.
        let used: Vec<(String, CpuTime)> = used.collect();
        let mut ledger = self.ledger.write().unwrap_or_else(PoisonError::into_inner);
        for (name, new) in used {
            if new.total() > Duration::ZERO {
                ledger.add_cpu(&name, new.user, new.system);
            }
        }
    }

    /// Divides the CPU time that no sample has spoken for yet: no more come.
    pub(super) fn settle_cpu(&self) {
        let mut ledger = self.ledger.write().unwrap_or_else(PoisonError::into_inner);
        ledger.settle_cpu();
    }

    /// Services with a TLS library, and those that have an account already, by
    /// handshakes or connections: on a whole host the rest would only fill the
    /// ledger. Of what the user named, all.
    pub(super) fn services_worth_booking(&self) -> BTreeSet<String> {
        let services = self.table.services();
        let ledger = self.ledger();
        let worth = services.iter().filter(|service| {
            self.named
                || ledger.service(service.name.as_str()).is_some()
                || self.libraries_of(service).next().is_some()
        });
        worth
            .map(|service| service.name.as_str().to_owned())
            .collect()
    }

    /// Books the handshakes that still wait for another source: no more evidence
    /// is expected.
    pub(super) fn flush(&mut self, mut see: impl FnMut(&str, &Evidence)) {
        let now = monotonic_now();
        self.with_desk(|_, desk| desk.flush(now, &mut see));
    }

    /// Works at the desk, with the kernel side at hand and the ledger locked.
    pub(super) fn with_desk<T>(&mut self, work: impl FnOnce(&mut Loaded, &mut Desk<'_>) -> T) -> T {
        let mut ledger = self.ledger.write().unwrap_or_else(PoisonError::into_inner);
        let mut desk = Desk {
            registry: &self.registry,
            joiner: &mut self.joiner,
            books: Books {
                window: &mut self.window,
                signatures: &mut self.signatures,
                table: &mut self.table,
                ledger: &mut ledger,
            },
            appeared: false,
        };
        work(&mut self.loaded, &mut desk)
    }

    /// Asks the kernel how many TIME_WAIT sockets there are where services left some.
    pub(super) fn bound_time_wait(&self) {
        let leaves_some = |service: &ServiceView<'_>| {
            let ledger = self.ledger();
            let account = ledger.service(service.name.as_str());
            account.is_some_and(|account| account.time_wait_created() > 0)
        };
        let services = self.table.services();
        for service in services.iter().filter(|service| leaves_some(service)) {
            let process = service.processes.first();
            let counted = process.and_then(|pid| self.proc.time_wait_sockets(*pid));
            if let Some(sockets) = counted {
                let mut ledger = self.ledger.write().unwrap_or_else(PoisonError::into_inner);
                ledger.bound_time_wait(service.name.as_str(), sockets);
            }
        }
    }
}
