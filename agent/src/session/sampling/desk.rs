//! Counts samples by what they show, service by service.

mod code;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::kernel::Kernel;
use super::softirqs::Softirqs;
use super::starts::Starts;
use code::{Codes, Surroundings};
use tlsprof_common::{InterruptTime, Pid};
use tlsprof_discover::table::{ProcessSource, ProcessTable};
use tlsprof_evidence::activity::{
    Activity, Basis, Mode, Observed, Place, Tls, Upkeep, UserCode, classify,
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
/// From one look at the kernel's modules to the next.
const COMPARE_MODULES: u32 = 10;

/// What samples are judged by, beside themselves.
pub(super) struct Scene<'a, S> {
    pub table: &'a ProcessTable<S>,
    /// What is known of TLS in each service.
    pub tls: BTreeMap<&'a str, Tls>,
    /// Processes that began after this mark of the table may be at their start; None where first handshakes may be
    /// missed.
    pub(crate) starting_since: Option<u64>,
    /// Memory of a process around an address.
    pub(crate) around: &'a dyn Fn(Pid, u64) -> io::Result<Surroundings>,
}

/// Where samples are counted until it is known whether their service is worth booking.
#[derive(Debug)]
pub(in crate::session) struct SampleDesk {
    kernel: Kernel,
    interrupts: InterruptTime,
    asked: u32,
    codes: Codes,
    by_service: BTreeMap<String, Booking>,
    /// Work for the network that is in no profiled thread's time.
    pub(super) elsewhere: Softirqs,
    pub(in crate::session) starts: Starts,
}

impl Default for SampleDesk {
    fn default() -> Self {
        Self {
            kernel: Kernel::unread(),
            interrupts: InterruptTime::Unknown,
            asked: 0,
            codes: Codes::default(),
            by_service: BTreeMap::new(),
            elsewhere: Softirqs::default(),
            starts: Starts::default(),
        }
    }
}

impl SampleDesk {
    pub(in crate::session) fn know_kernel(&mut self, kernel: Kernel, interrupts: InterruptTime) {
        self.kernel = kernel;
        self.interrupts = interrupts;
    }

    /// Why it is not known what the kernel was at work on.
    pub(in crate::session) fn kernel_unknown(&self) -> Option<&str> {
        self.kernel.unknown()
    }

    /// Counts a sample; returns what it was counted as, if for a profiled service.
    pub(super) fn take<S: ProcessSource>(
        &mut self,
        scene: &Scene<'_, S>,
        sample: &CpuSample,
    ) -> Option<(Activity, Mode)> {
        let service = scene.table.service_of(sample.process);
        let service = service.filter(|_| scene.table.is_selected(sample.process));
        let tls = service.and_then(|service| scene.tls.get(service.as_str()));
        let tls = tls.copied().unwrap_or(Tls::Unknown);
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
        let is_start = matches!(activity, Activity::Application | Activity::Encryption)
            && is_before_handshakes(scene, tls, sample);
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

    fn place<S: ProcessSource>(
        &mut self,
        scene: &Scene<'_, S>,
        tls: Tls,
        sample: &CpuSample,
    ) -> Place {
        let table = scene.table;
        if !sample.kernel_stack.is_empty() {
            return Place::Kernel(self.kernel.work(&sample.kernel_stack));
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

    /// Asks again which functions the kernel has, and as long as that is not known, where interrupts are counted.
    pub(super) fn ask_again(&mut self) {
        self.asked = self.asked.wrapping_add(1);
        self.kernel.learn();
        if self.asked.is_multiple_of(COMPARE_MODULES) {
            self.kernel.compare_modules();
        }
        if self.interrupts == InterruptTime::Unknown && self.asked.is_multiple_of(ASK_AGAIN) {
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

/// Whether the first handshake of the process is yet to come: it would have been seen, and its service has some.
fn is_before_handshakes<S: ProcessSource>(
    scene: &Scene<'_, S>,
    tls: Tls,
    sample: &CpuSample,
) -> bool {
    let has_begun = |mark| scene.table.has_begun_since(sample.process, mark);
    sample.before_handshakes
        && matches!(tls, Tls::Seen { .. })
        && scene.starting_since.is_some_and(has_begun)
}

#[cfg(test)]
mod tests;
