//! CPU samples to their service's account.

mod desk;
mod division;
mod packets;
mod softirqs;
mod tls;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use super::Session;
use super::spots::Spots;
use crate::causes::one_line;
use crate::discover::ProcRoot;
use crate::discover::interrupts::InterruptTime;
use crate::discover::table::ProcessTable;
use crate::evidence::activity::kernel_symbols::KernelFunctions;
use crate::evidence::activity::{Activity, Mode};
use crate::evidence::cpu::CpuSample;
use crate::evidence::fingerprint::compiled;
use crate::kernel::packets::Packets;
use crate::ledger::{Code, NetworkEvents, Sampling, SoftirqDivision, TimedPackets};
pub(super) use desk::SampleDesk;
use desk::Scene;
use tls::tls_of;

impl Session {
    pub(super) fn begin_sampling(&mut self) {
        self.loaded.start_samples();
        let sampling = match &self.loaded.samples {
            Ok(_) => {
                let functions = KernelFunctions::read().map_err(|error| one_line(&error));
                self.samples.know_kernel(functions, InterruptTime::read());
                Sampling::Every(self.loaded.sampling.period())
            }
            Err(reason) => Sampling::Off(reason.clone().into()),
        };
        let mut ledger = self.ledger.write().unwrap_or_else(PoisonError::into_inner);
        ledger.set_sampling(sampling);
        ledger.set_softirq_division(softirq_division(&self.loaded.packets));
    }

    /// Takes the samples since the last time: after the process events and mappings
    /// of that time.
    pub(super) fn take_samples(&mut self) {
        let calls_seen = self.loaded.connections.calls.is_ok();
        let Self {
            loaded,
            table,
            registry,
            samples,
            spots,
            proc,
            undecodable,
            ledger,
            readings,
            ..
        } = self;
        let ledger = ledger.read().unwrap_or_else(PoisonError::into_inner);
        let scene = Scene {
            table,
            tls: |service: &str| tls_of(ledger.service(service), calls_seen),
            around: &|process, address| proc.memory_around(process, address, compiled::REACH),
        };
        let probed = |process| table.maps(process, |image| registry.is_profiled(image));
        loaded.take_samples(|key, value| {
            let Some(sample) = CpuSample::decode(key, value, probed) else {
                *undecodable += 1;
                return;
            };
            readings.note_sample(sample.process);
            let shown = samples.take(&scene, &sample);
            if let (Some(spots), Some(shown)) = (spots.as_mut(), shown) {
                keep_spot(spots, proc, table, &sample, shown);
            }
        });
    }

    /// Books the samples of these services: before the CPU time of the same interval.
    pub(super) fn book_samples(&mut self, services: &BTreeSet<String>) {
        let bookings = self.samples.settle(services);
        let alive = self.table.services();
        let alive: BTreeSet<&str> = alive.iter().map(|one| one.name.as_str()).collect();
        self.samples.keep(|name| alive.contains(name));
        self.samples.ask_again();
        let mut ledger = self.ledger.write().unwrap_or_else(PoisonError::into_inner);
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
        let mut events: BTreeMap<Option<String>, NetworkEvents> = ledger
            .services()
            .map(|(name, account)| (Some(name.to_owned()), account.network_events()))
            .collect();
        events.insert(None, ledger.unprofiled_events());
        for share in self.samples.elsewhere.divide(&events) {
            tracing::debug!(?share, "CPU samples of softirqs");
            ledger.add_samples(&share.service, share.activity, Mode::Softirq, share.samples);
            ledger.note_timed_softirqs(&share.service, share.activity, share.timed);
        }
        ledger.set_softirq_division(softirq_division(&self.loaded.packets));
    }
}

fn softirq_division(packets: &Result<Packets, String>) -> SoftirqDivision {
    match packets {
        Err(reason) => SoftirqDivision::Events(reason.clone()),
        Ok(packets) => {
            let counts = packets.counts();
            SoftirqDivision::Timed(TimedPackets {
                all: counts.all,
                timed: counts.timed,
                missing: packets.missing().to_vec(),
            })
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
