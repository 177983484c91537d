//! CPU time of services, as the kernel accounts it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::readings::Readings;
use super::sampling::Samples;
use super::shared::{monotonic_now, read, write};
use super::targets::Targets;
use tlsprof_common::Pid;
use tlsprof_discover::host_time::HostTime;
use tlsprof_discover::process::CpuTime;
use tlsprof_discover::table::ServiceView;
use tlsprof_ledger::{OTHER, SharedLedger};

/// It is read from /proc this often; a process that ends between two readings has the rest of
/// its time from its exit event.
const PERIOD: Duration = Duration::from_secs(1);

/// A scrape has it read this long after the last time at the earliest: scrapes without pause must not
/// set the rate of what is done with each reading.
const LEAST: Duration = Duration::from_millis(100);

/// What was read and booked of it.
pub(super) struct CpuBook {
    read_at: Duration,
    readings: Readings,
    /// What services had used when the profile began.
    before: BTreeMap<String, CpuTime>,
    booked: BTreeMap<String, CpuTime>,
    /// Somebody waits for it to be booked.
    hastened: bool,
    /// Of all CPUs, when the window began and when it ended.
    host_time: (Option<HostTime>, Option<HostTime>),
}

impl CpuBook {
    pub(super) fn new() -> Self {
        Self {
            read_at: monotonic_now(),
            readings: Readings::default(),
            before: BTreeMap::new(),
            booked: BTreeMap::new(),
            hastened: false,
            host_time: (None, None),
        }
    }

    /// When it was last booked.
    pub(super) const fn read_at(&self) -> Duration {
        self.read_at
    }

    /// Whether it is time to book it.
    pub(super) fn is_due(&self) -> bool {
        let since = monotonic_now().saturating_sub(self.read_at);
        since >= PERIOD || self.hastened && since >= LEAST
    }

    /// How long to wait for evidence, at most `timeout`: a scrape may wait for what is due.
    pub(super) fn patience(&self, timeout: Duration) -> Duration {
        match self.is_due() {
            true => Duration::ZERO,
            false => timeout,
        }
    }

    /// It is time to book it.
    pub(super) const fn hasten(&mut self) {
        self.hastened = true;
    }

    /// A sample hit this process, or it did a handshake.
    pub(super) fn note(&mut self, process: Pid) {
        self.readings.note(process);
    }

    /// Share of the time that this host asked for and that the hypervisor gave to others.
    pub(super) fn stolen(&self) -> Option<f64> {
        let (before, after) = self.host_time;
        Some(after.or_else(HostTime::read)?.stolen_since(before?))
    }

    /// CPU time counts from here on: what services used while probes were being attached
    /// was neither probed nor sampled.
    pub(super) fn begin(&mut self, targets: &mut Targets) {
        self.host_time.0 = HostTime::read();
        targets.table.read_cpu(|_| true);
        let services = targets.table.services();
        let names = services.iter().map(|service| service.name.as_str());
        self.before = names
            .map(|name| (name.to_owned(), targets.table.cpu_since_start(name)))
            .collect();
        self.read_at = monotonic_now();
    }

    /// Reads all of it for the last time.
    pub(super) fn end(&mut self, targets: &mut Targets) {
        targets.table.read_cpu(|_| true);
        self.host_time.1 = HostTime::read();
    }

    /// Reads and books what the kernel accounted to the services since the last time, but for
    /// processes that hardly ran: these follow within seconds, or at the end. Without samples
    /// nothing shows who ran.
    pub(super) fn book(
        &mut self,
        sampled: bool,
        targets: &mut Targets,
        samples: &mut Samples,
        ledger: &SharedLedger,
    ) {
        let wanted = self.readings.begin();
        targets.table.read_cpu(|pid| !sampled || wanted(pid));
        self.book_as_read(targets, samples, ledger);
    }

    /// Books what was read last, and the samples of that time.
    pub(super) fn book_as_read(
        &mut self,
        targets: &Targets,
        samples: &mut Samples,
        ledger: &SharedLedger,
    ) {
        self.read_at = monotonic_now();
        self.hastened = false;
        let known = read(ledger);
        let mut names = targets.worth_booking(&known);
        // Services without live processes may have ended since the last time, or have come
        // and gone since then.
        names.extend(self.booked.keys().cloned());
        let known_names = known.services().map(|(name, _)| name);
        // The process table does not know services by `other`: their time was booked under
        // their own names while they lived.
        names.extend(known_names.filter(|name| *name != OTHER).map(str::to_owned));
        drop(known);
        if targets.are_named() {
            names.extend(self.before.keys().cloned());
        }
        samples.book(&names, targets, ledger);
        let used = names.into_iter().map(|name| {
            let total = targets.table.cpu_since_start(&name);
            let before = || self.before.get(&name).copied().unwrap_or_default();
            let booked = self.booked.entry(name.clone()).or_insert_with(before);
            let new = total.since(*booked);
            *booked = total;
            (name, new)
        });
        // Before the ledger is locked: it takes a look at each process.
        let used: Vec<(String, CpuTime)> = used.collect();
        let mut ledger = write(ledger);
        for (name, new) in used {
            if new.total() > Duration::ZERO {
                ledger.add_cpu(&name, new.user, new.system);
            }
        }
    }
}

/// Asks the kernel how many TIME_WAIT sockets there are where services left some.
pub(super) fn bound_time_wait(targets: &Targets, ledger: &SharedLedger) {
    let leaves_some = |service: &ServiceView<'_>| {
        let ledger = read(ledger);
        let account = ledger.service(service.name.as_str());
        account.is_some_and(|account| account.time_wait_created() > 0)
    };
    let services = targets.table.services();
    for service in services.iter().filter(|service| leaves_some(service)) {
        let process = service.processes.first();
        let counted = process.and_then(|pid| targets.proc.time_wait_sockets(*pid));
        if let Some(sockets) = counted {
            write(ledger).bound_time_wait(service.name.as_str(), sockets);
        }
    }
}
