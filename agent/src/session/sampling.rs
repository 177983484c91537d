//! CPU samples to their service's account.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use super::Session;
use super::softirqs::Softirqs;
use super::spots::Spots;
use crate::causes::one_line;
use crate::discover::ProcRoot;
use crate::discover::interrupts::InterruptTime;
use crate::discover::table::ProcessTable;
use crate::evidence::activity::kernel_symbols::KernelFunctions;
use crate::evidence::activity::{
    Activity, Basis, Mode, Observed, Place, Tls, UserCode, Verdict, classify,
};
use crate::evidence::cpu::CpuSample;
use crate::evidence::fingerprint::Cache;
use crate::ledger::{Code, Ledger, NetworkEvents, Sampling};

/// Services whose samples wait to be booked; those of further ones are dropped, as
/// their CPU time is booked under `other`.
const MAX_SERVICES: usize = 1024;
/// Places in user code whose fingerprints are remembered, some 300 bytes each.
const FINGERPRINTS: usize = 16_384;

/// The samples of one service.
#[derive(Debug, Default)]
struct Counts {
    by_activity: BTreeMap<(Activity, Mode), u64>,
    /// In the kernel, in no function that the rules know.
    unclassified: u64,
}

/// Where samples are counted until it is known whether their service is worth booking.
#[derive(Debug)]
pub(super) struct SampleDesk {
    by_service: BTreeMap<String, Counts>,
    softirqs: Softirqs,
    functions: KernelFunctions,
    interrupts: InterruptTime,
    fingerprints: Cache,
}

impl SampleDesk {
    fn new(functions: KernelFunctions) -> Self {
        Self {
            by_service: BTreeMap::new(),
            softirqs: Softirqs::default(),
            functions,
            interrupts: InterruptTime::read(),
            fingerprints: Cache::new(FINGERPRINTS),
        }
    }

    fn take(
        &mut self,
        table: &ProcessTable<ProcRoot>,
        ledger: &Ledger,
        sample: &CpuSample,
    ) -> Option<Verdict> {
        let service = table.service_of(sample.process);
        let service = service.filter(|_| table.is_selected(sample.process));
        let account = service.and_then(|name| ledger.service(name.as_str()));
        let place = self.place(table, sample);
        let mut verdict = classify(&Observed {
            handshake: sample.handshake,
            tls: account.map_or(Tls::Unknown, |account| account.tls()),
            place,
        });
        // Not known shortly after the start of a machine: most kernels count so.
        let in_thread = verdict.in_thread_time(self.interrupts).unwrap_or(true);
        let Some(service) = service.filter(|_| in_thread) else {
            if verdict.mode == Mode::Softirq {
                self.softirqs.add(verdict.activity, sample.count);
            }
            return None;
        };
        if verdict.mode == Mode::Softirq {
            verdict.mode = Mode::System;
        }
        let counts = self.account(service.as_str())?;
        let count = counts
            .by_activity
            .entry((verdict.activity, verdict.mode))
            .or_default();
        *count = count.saturating_add(sample.count);
        if verdict.basis == Basis::Unclassified && verdict.mode == Mode::System {
            counts.unclassified = counts.unclassified.saturating_add(sample.count);
        }
        Some(verdict)
    }

    fn place(&mut self, table: &ProcessTable<ProcRoot>, sample: &CpuSample) -> Place {
        if !sample.kernel_stack.is_empty() {
            return Place::Kernel(self.functions.work(&sample.kernel_stack));
        }
        Place::User(
            if table.is_in_tls_library(sample.process, sample.instruction) {
                UserCode::TlsLibrary
            } else if sample.code.is_empty() {
                UserCode::Unknown
            } else {
                UserCode::Fingerprint(self.fingerprints.classify(&sample.code, sample.at))
            },
        )
    }

    fn account(&mut self, service: &str) -> Option<&mut Counts> {
        if !self.by_service.contains_key(service) {
            if self.by_service.len() >= MAX_SERVICES {
                return None;
            }
            self.by_service
                .insert(service.to_owned(), Counts::default());
        }
        self.by_service.get_mut(service)
    }
}

impl Session {
    pub(super) fn begin_sampling(&mut self) {
        let functions = KernelFunctions::read().map_err(|error| one_line(&error));
        self.loaded.start_samples();
        let started = self.loaded.samples.as_ref().map(|_| ());
        let sampling = match (started, functions) {
            (Ok(()), Ok(functions)) => {
                self.samples = Some(SampleDesk::new(functions));
                Sampling::Every(self.loaded.sampling.period())
            }
            (Err(reason), _) => Sampling::Off(reason.clone().into()),
            (Ok(()), Err(reason)) => Sampling::Off(reason.into()),
        };
        let mut ledger = self.ledger.write().unwrap_or_else(PoisonError::into_inner);
        ledger.set_sampling(sampling);
    }

    /// Takes the samples since the last time: after the process events and mappings
    /// of that time.
    pub(super) fn take_samples(&mut self) {
        let Self {
            loaded,
            table,
            registry,
            samples: Some(desk),
            spots,
            proc,
            undecodable,
            ..
        } = self
        else {
            return;
        };
        let ledger = self.ledger.read().unwrap_or_else(PoisonError::into_inner);
        let probed = |process| table.maps(process, |image| registry.is_profiled(image));
        loaded.take_samples(|key, value| {
            let Some(sample) = CpuSample::decode(key, value, probed) else {
                *undecodable += 1;
                return;
            };
            let verdict = desk.take(table, &ledger, &sample);
            if let (Some(spots), Some(verdict)) = (spots.as_mut(), verdict) {
                keep_spot(spots, proc, table, &sample, verdict);
            }
        });
    }

    /// Books the samples of these services: before the CPU time of the same interval.
    pub(super) fn book_samples(&mut self, services: &BTreeSet<String>) {
        let Some(desk) = &mut self.samples else {
            return;
        };
        let mut ledger = self.ledger.write().unwrap_or_else(PoisonError::into_inner);
        for service in services {
            let Some(counts) = desk.by_service.remove(service) else {
                continue;
            };
            for ((activity, mode), count) in counts.by_activity {
                tracing::debug!(service, ?activity, ?mode, count, "CPU samples");
                ledger.add_samples(service, activity, mode, count);
            }
            ledger.note_unclassified(service, counts.unclassified);
        }
        let mut events: BTreeMap<Option<String>, NetworkEvents> = ledger
            .services()
            .map(|(name, account)| (Some(name.to_owned()), account.network_events()))
            .collect();
        events.insert(None, ledger.unprofiled_events());
        for (service, activity, count) in desk.softirqs.divide(&events) {
            ledger.add_samples(&service, activity, Mode::Softirq, count);
        }
    }
}

/// Keeps which code a sample hit.
fn keep_spot(
    spots: &mut Spots,
    proc: &ProcRoot,
    table: &ProcessTable<ProcRoot>,
    sample: &CpuSample,
    verdict: Verdict,
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
    let (activity, mode) = (verdict.activity, verdict.mode);
    spots.add(service.as_str(), activity, mode, code, sample.count);
}
