//! Counts samples by what they show, service by service.

mod code;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::softirqs::Softirqs;
use code::{Codes, Surroundings};
use tlsprof_common::{InterruptTime, Pid};
use tlsprof_discover::table::{ProcessSource, ProcessTable};
use tlsprof_evidence::activity::kernel_symbols::KernelFunctions;
use tlsprof_evidence::activity::{
    Activity, Basis, KernelWork, Mode, Observed, Place, Tls, Upkeep, UserCode, classify,
};
use tlsprof_evidence::cpu::CpuSample;

/// Samples by what they show.
pub(super) type Counts = BTreeMap<(Activity, Mode), u64>;

/// The samples of a service.
#[derive(Debug, Default)]
pub(super) struct Booking {
    pub(crate) counts: Counts,
    /// In the kernel, in no function that the rules know.
    pub unclassified: u64,
    /// Upkeep of processes and threads, in the application's.
    pub upkeep: BTreeMap<Upkeep, u64>,
    /// Encryption by its instructions, in code of no TLS library.
    pub cipher_alone: u64,
}

/// Services whose samples wait to be booked; those of further ones are dropped, as
/// their CPU time is booked under `other`.
const MAX_SERVICES: usize = 1024;

/// Bookings, about one a second, from one question about interrupts to the next.
const ASK_AGAIN: u32 = 60;

/// What samples are judged by, beside themselves.
pub(super) struct Scene<'a, S, T> {
    pub table: &'a ProcessTable<S>,
    /// What is known of TLS in a service.
    pub tls: T,
    /// Memory of a process around an address.
    pub(crate) around: &'a dyn Fn(Pid, u64) -> io::Result<Surroundings>,
}

/// Where samples are counted until it is known whether their service is worth booking.
#[derive(Debug)]
pub(in crate::session) struct SampleDesk {
    functions: Result<KernelFunctions, String>,
    interrupts: InterruptTime,
    asked: u32,
    codes: Codes,
    by_service: BTreeMap<String, Booking>,
    /// Work for the network that is in no profiled thread's time.
    pub(super) elsewhere: Softirqs,
}

impl Default for SampleDesk {
    fn default() -> Self {
        Self {
            functions: Err("not read yet".to_owned()),
            interrupts: InterruptTime::Unknown,
            asked: 0,
            codes: Codes::default(),
            by_service: BTreeMap::new(),
            elsewhere: Softirqs::default(),
        }
    }
}

impl SampleDesk {
    pub(in crate::session) fn know_kernel(
        &mut self,
        functions: Result<KernelFunctions, String>,
        interrupts: InterruptTime,
    ) {
        self.functions = functions;
        self.interrupts = interrupts;
    }

    /// Why it is not known what the kernel was at work on.
    pub(in crate::session) fn kernel_unknown(&self) -> Option<&str> {
        self.functions.as_ref().err().map(String::as_str)
    }

    /// Counts a sample; returns what it was counted as, if for a profiled service.
    pub(super) fn take<S: ProcessSource, T: Fn(&str) -> Tls>(
        &mut self,
        scene: &Scene<'_, S, T>,
        sample: &CpuSample,
    ) -> Option<(Activity, Mode)> {
        let service = scene.table.service_of(sample.process);
        let service = service.filter(|_| scene.table.is_selected(sample.process));
        let tls = service.map_or(Tls::Unknown, |service| (scene.tls)(service.as_str()));
        let place = self.place(scene, tls, sample);
        let verdict = classify(&Observed {
            handshake: sample.handshake,
            tls,
            place,
        });
        // Where it is not known, as in most kernels.
        let in_thread = verdict.in_thread_time(self.interrupts).unwrap_or(true);
        let (service, mode) = match (service, verdict.mode) {
            (Some(service), Mode::Softirq) if in_thread => (service, Mode::System),
            (Some(service), mode @ (Mode::User | Mode::System)) => (service, mode),
            (_, Mode::Softirq) => {
                self.elsewhere.add(verdict, sample.count);
                return None;
            }
            (None, _) => return None,
        };
        // The clocks of handshakes contain what interrupts them, where the thread pays.
        let in_handshake = sample.handshake && mode == Mode::System;
        let activity = match in_handshake {
            true => Activity::Handshake,
            false => verdict.activity,
        };
        let booking = self.account(service.as_str())?;
        let count = booking.counts.entry((activity, mode)).or_default();
        *count = count.saturating_add(sample.count);
        // The TLS library sets itself up, before it has anything to encrypt.
        let is_start = sample.before_handshakes
            && matches!(activity, Activity::Application | Activity::Encryption);
        let upkeep = verdict.upkeep.or(is_start.then_some(Upkeep::Start));
        if let Some(upkeep) = upkeep {
            let count = booking.upkeep.entry(upkeep).or_default();
            *count = count.saturating_add(sample.count);
        }
        if mode == Mode::System && !in_handshake && verdict.basis == Basis::Unclassified {
            booking.unclassified = booking.unclassified.saturating_add(sample.count);
        }
        let by_instructions = matches!(place, Place::User(UserCode::Fingerprint(_)));
        if activity == Activity::Encryption && by_instructions {
            booking.cipher_alone = booking.cipher_alone.saturating_add(sample.count);
        }
        Some((activity, mode))
    }

    fn place<S: ProcessSource, T>(
        &mut self,
        scene: &Scene<'_, S, T>,
        tls: Tls,
        sample: &CpuSample,
    ) -> Place {
        let table = scene.table;
        if !sample.kernel_stack.is_empty() {
            let work = match &self.functions {
                Ok(functions) => functions.work(&sample.kernel_stack),
                Err(_) => KernelWork::of([]),
            };
            return Place::Kernel(work);
        }
        Place::User(
            if table.is_in_tls_library(sample.process, sample.instruction) {
                UserCode::TlsLibrary
            } else if table.is_in_loader(sample.process, sample.instruction) {
                UserCode::Loader
            } else if sample.code.is_empty() {
                UserCode::Unknown
            } else {
                let mapped = table.is_in_image(sample.process, sample.instruction);
                let around = scene.around;
                UserCode::Fingerprint(self.codes.kind(sample, tls, mapped, around))
            },
        )
    }

    fn account(&mut self, service: &str) -> Option<&mut Booking> {
        if !self.by_service.contains_key(service) {
            if self.by_service.len() >= MAX_SERVICES {
                return None;
            }
            self.by_service
                .insert(service.to_owned(), Booking::default());
        }
        self.by_service.get_mut(service)
    }

    /// Forgets what was counted for services that have ended and are not worth booking.
    pub(super) fn keep(&mut self, is_alive: impl Fn(&str) -> bool) {
        self.by_service.retain(|name, _| is_alive(name));
    }

    /// Asks again where interrupts are counted, as long as that is not known.
    pub(super) fn ask_again(&mut self) {
        if self.interrupts != InterruptTime::Unknown {
            return;
        }
        self.asked = self.asked.wrapping_add(1);
        if self.asked.is_multiple_of(ASK_AGAIN) {
            self.interrupts = tlsprof_discover::interrupts::read();
        }
    }

    /// Whether it is not known if a thread's time has the interrupts that hit it.
    pub(in crate::session) fn interrupts_unknown(&self) -> bool {
        self.interrupts == InterruptTime::Unknown
    }

    /// Hands over what was counted for these services.
    pub(super) fn settle(&mut self, services: &BTreeSet<String>) -> Vec<(String, Booking)> {
        let those = services.iter().filter_map(|name| {
            let booking = self.by_service.remove(name)?;
            Some((name.clone(), booking))
        });
        those.collect()
    }
}

#[cfg(test)]
mod tests;
