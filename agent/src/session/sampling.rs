//! CPU samples to their service's account.

mod desk;
mod division;
mod kernel;
mod softirqs;
mod starts;
mod tls;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::options::Options;
use super::primitives::Primitives;
use super::rates::Rates;
use super::shared::{read, write};
use super::spots::Spots;
use super::targets::Targets;
pub(super) use desk::SampleDesk;
use desk::Scene;
pub(super) use kernel::Kernel;
use tls::tls_of;
use tlsprof_common::Pid;
use tlsprof_discover::ProcRoot;
use tlsprof_discover::service::ServiceName;
use tlsprof_discover::table::ProcessTable;
use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_evidence::cpu::CpuSample;
use tlsprof_evidence::fingerprint::compiled;
use tlsprof_kernel::loaded::Loaded;
use tlsprof_ledger::{Code, NetworkEvents, Sampling, SharedLedger};
use tlsprof_outlet::flamegraph::Stack;

/// The samples of a session: what they show, and the code that they hit.
pub(super) struct Samples {
    desk: SampleDesk,
    primitives: Primitives,
    spots: Option<Spots>,
    undecodable: u64,
    rates: Rates,
    /// How the samples after the next booking are taken, if otherwise than those before.
    next: Option<Sampling>,
}

impl Samples {
    pub(super) fn new(desk: SampleDesk, options: &Options) -> Self {
        Self {
            desk,
            primitives: Primitives::new(),
            spots: options.spots.then(Spots::default),
            undecodable: 0,
            rates: options.rates,
            next: None,
        }
    }

    /// Starts sampling.
    pub(super) fn begin(&mut self, loaded: &mut Loaded, ledger: &SharedLedger) {
        loaded.start_samples();
        self.resume(loaded, ledger, 1.0);
    }

    /// Goes on. Each sample stands for so many times the time between two: for more than once where connections are
    /// followed in windows.
    pub(super) fn resume(&mut self, loaded: &mut Loaded, ledger: &SharedLedger, times: f64) {
        let in_windows = times > 1.0;
        self.desk.starts.follow(!in_windows);
        loaded.set_sample_frequency(self.rates.now(in_windows));
        let sampling = match &loaded.samples {
            Ok(_) if in_windows => Sampling::InWindows(loaded.sampling.period().mul_f64(times)),
            Ok(_) => Sampling::Every(loaded.sampling.period()),
            Err(reason) => Sampling::Off(reason.to_string().into()),
        };
        write(ledger).set_sampling(sampling);
    }

    /// Samples that could not be decoded.
    pub(super) const fn undecodable(&self) -> u64 {
        self.undecodable
    }

    /// Samples whose functions were not looked up in time.
    pub(super) const fn not_looked_up(&self) -> u64 {
        self.primitives.not_looked_up()
    }

    /// What they cannot show, and why.
    pub(super) fn notes(&self) -> Vec<String> {
        let unknown = self.desk.kernel_unknown().map(|reason| {
            format!(
                "System time counts as application, because kernel functions cannot be identified: {reason}."
            )
        });
        let interrupts = self.desk.interrupts_unknown().then(|| {
            "It is unknown whether this kernel accounts interrupts to the threads that they hit. tlsprof assumes it does, and counts them as system time of these threads.".to_owned()
        });
        unknown.into_iter().chain(interrupts).collect()
    }

    /// Samples by the names of the code that they hit.
    pub(super) fn stacks(&self) -> BTreeMap<Stack, u64> {
        self.spots.as_ref().map(Spots::stacks).unwrap_or_default()
    }

    /// Takes the samples since the last time: after the process events and mappings of that time.
    pub(super) fn take(&mut self, loaded: &mut Loaded, targets: &Targets) -> Vec<CpuSample> {
        let Targets {
            table, registry, ..
        } = targets;
        let probed = |process| table.maps(process, |image| registry.is_profiled(image));
        self.desk.starts.note(table.mark());
        let mut taken = Vec::new();
        loaded.take_samples(|key, value| match CpuSample::decode(key, value, probed) {
            Some(sample) => taken.push(sample),
            None => self.undecodable += 1,
        });
        taken
    }

    /// Counts samples by what they show: after the evidence of their time is booked, as a cipher proves
    /// the protection of records only where TLS is known. `hit` gets the process of each.
    pub(super) fn count(
        &mut self,
        taken: &[CpuSample],
        calls_seen: bool,
        targets: &Targets,
        ledger: &SharedLedger,
        mut hit: impl FnMut(Pid),
    ) {
        let Targets { proc, table, .. } = targets;
        let ledger = read(ledger);
        let services = taken
            .iter()
            .filter_map(|sample| table.service_of(sample.process));
        let services: BTreeSet<&str> = services.map(ServiceName::as_str).collect();
        let tls = services
            .into_iter()
            .map(|service| (service, tls_of(ledger.service(service), calls_seen)));
        let scene = Scene {
            table,
            tls: tls.collect(),
            starting_since: self.desk.starts.since().filter(|_| calls_seen),
            around: &|process, address| proc.memory_around(process, address, compiled::REACH),
        };
        for sample in taken {
            hit(sample.process);
            let Some(shown) = self.desk.take(&scene, sample) else {
                continue;
            };
            if let Some(service) = table.service_of(sample.process) {
                let mappings = table.images_of(sample.process);
                self.primitives
                    .note(service.as_str(), shown, sample, proc, mappings);
            }
            if let Some(spots) = self.spots.as_mut() {
                keep_spot(spots, proc, table, sample, shown);
            }
        }
    }

    /// Samples less often, once it is time for that: when the samples so far were taken, and are about to be booked.
    pub(super) fn follow_rate(&mut self, loaded: &mut Loaded, elapsed: Duration) {
        if let Some(rate) = self.rates.turn(elapsed)
            && loaded.samples.is_ok()
        {
            loaded.set_sample_frequency(rate);
            self.next = Some(Sampling::Every(loaded.sampling.period()));
        }
    }

    /// Books what is still being looked up: no more samples come.
    pub(super) fn finish(&mut self, ledger: &SharedLedger) {
        self.primitives.await_answers();
        self.primitives.hand_over(&mut write(ledger));
    }

    /// Books the samples of these services: before the CPU time of the same interval.
    pub(super) fn book(
        &mut self,
        services: &BTreeSet<String>,
        targets: &Targets,
        ledger: &SharedLedger,
    ) {
        let bookings = self.desk.settle(services);
        let alive = targets.table.services();
        let alive: BTreeSet<&str> = alive.iter().map(|one| one.name.as_str()).collect();
        self.desk.keep(|name| alive.contains(name));
        self.desk.ask_again();
        self.desk.starts.go_on();
        let mut ledger = write(ledger);
        for (service, booking) in bookings {
            for ((activity, mode), count) in booking.counts {
                tracing::debug!(service, ?activity, ?mode, count, "CPU samples");
                ledger.add_samples(&service, activity, mode, count);
            }
            ledger.note_unclassified(&service, booking.unclassified);
            for (upkeep, count) in booking.upkeep {
                ledger.note_upkeep(&service, upkeep, count);
            }
            ledger.note_cipher_alone(&service, booking.cipher_alone);
        }
        self.primitives
            .book(&mut ledger, |name| alive.contains(name));
        let mut events: BTreeMap<Option<String>, NetworkEvents> = ledger
            .services()
            .map(|(name, account)| (Some(name.to_owned()), account.network_events()))
            .collect();
        events.insert(None, ledger.unprofiled_events());
        for share in self.desk.elsewhere.divide(&events) {
            tracing::debug!(?share, "CPU samples of softirqs");
            ledger.add_samples(&share.service, share.activity, Mode::Softirq, share.samples);
        }
        if let Some(next) = self.next.take() {
            ledger.set_sampling(next);
        }
    }
}

/// Keeps which code a sample hit.
fn keep_spot(
    spots: &mut Spots,
    proc: &ProcRoot,
    table: &ProcessTable<ProcRoot>,
    sample: &CpuSample,
    (activity, mode): (Activity, Mode),
) {
    let Some(service) = table.service_of(sample.process) else {
        return;
    };
    let code = match sample.kernel_stack.first() {
        Some(address) => Code::Kernel(*address),
        None => {
            let images = table.images_of(sample.process);
            spots.code_at(proc, sample.process, images, sample.instruction)
        }
    };
    spots.add(service.as_str(), activity, mode, code, sample.count);
}
