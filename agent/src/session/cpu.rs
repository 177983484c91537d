//! CPU time of services, as the kernel accounts it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::readings::Readings;
use super::sampling::Samples;
use super::shared::{monotonic_now, read, write};
use super::targets::Targets;
use tlsprof_common::Pid;
use tlsprof_discover::host_time::HostTime;
use tlsprof_discover::process::CpuTime;
use tlsprof_discover::service::ServiceName;
use tlsprof_discover::table::{ProcessSource, ProcessTable, ServiceView};
use tlsprof_ledger::{Ledger, SharedLedger};

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
        let _before = targets.table.take_cpu(|_| true);
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
        targets: &mut Targets,
        samples: &mut Samples,
        ledger: &SharedLedger,
    ) {
        self.read_at = monotonic_now();
        self.hastened = false;
        let (all, known) = (targets.are_named(), read(ledger));
        let mut services = targets.worth_booking(&known);
        let used = take_used(&mut targets.table, all, &mut services, &known);
        drop(known);
        samples.book(&services, targets, ledger);
        let mut ledger = write(ledger);
        for (service, new) in used {
            ledger.add_cpu(service.as_str(), new.user, new.system);
        }
    }
}

/// What services used since the last time: those worth booking, and those without live processes that something was
/// booked of. They may have ended since then, or have come and gone. Or `all`. Adds them to `services`.
fn take_used<S: ProcessSource>(
    table: &mut ProcessTable<S>,
    all: bool,
    services: &mut BTreeSet<String>,
    ledger: &Ledger,
) -> BTreeMap<ServiceName, CpuTime> {
    services.extend(ledger.booked_services().map(str::to_owned));
    let used = table.take_cpu(|service| all || services.contains(service));
    services.extend(used.keys().map(|service| service.as_str().to_owned()));
    used
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

#[cfg(test)]
mod tests;
