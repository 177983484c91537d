//! CPU samples to their service's account.

use std::collections::{BTreeMap, BTreeSet};

use super::Session;
use crate::discover::ProcRoot;
use crate::discover::table::ProcessTable;
use crate::evidence::activity::{Activity, Mode, UserCode};
use crate::evidence::cpu::CpuSample;

/// Samples by what they show.
pub(super) type Counts = BTreeMap<(Activity, Mode), u64>;

/// Services whose samples wait to be booked; those of further ones are dropped, as
/// their CPU time is booked under `other`.
const MAX_SERVICES: usize = 1024;

/// Where samples are counted until it is known whether their service is worth booking.
#[derive(Debug, Default)]
pub(super) struct SampleDesk {
    by_service: BTreeMap<String, Counts>,
    /// Work for the network on a CPU that did nothing for a profiled service.
    elsewhere: Counts,
}

impl SampleDesk {
    fn take(&mut self, table: &ProcessTable<ProcRoot>, sample: &CpuSample) {
        let user_code = user_code(table, sample);
        let shown = classify(sample, user_code);
        let service = table.service_of(sample.process);
        let counts = match service.filter(|_| table.is_selected(sample.process)) {
            Some(service) => match self.account(service.as_str()) {
                Some(counts) => counts,
                None => return,
            },
            None if shown.1 == Mode::Softirq => &mut self.elsewhere,
            None => return,
        };
        let count = counts.entry(shown).or_default();
        *count = count.saturating_add(sample.count);
    }

    fn account(&mut self, service: &str) -> Option<&mut Counts> {
        if !self.by_service.contains_key(service) {
            if self.by_service.len() >= MAX_SERVICES {
                return None;
            }
            self.by_service.insert(service.to_owned(), Counts::new());
        }
        self.by_service.get_mut(service)
    }

    /// Hands over what was counted for these services.
    pub(super) fn settle(&mut self, services: &BTreeSet<String>) -> Vec<(String, Counts)> {
        let those = services.iter().filter_map(|name| {
            let counts = self.by_service.remove(name)?;
            Some((name.clone(), counts))
        });
        those.collect()
    }
}

/// What is known of the code that a sample in user mode was taken in.
fn user_code(table: &ProcessTable<ProcRoot>, sample: &CpuSample) -> UserCode {
    if !sample.kernel_stack.is_empty() {
        return UserCode::Unknown;
    }
    if table.is_in_tls_library(sample.process, sample.instruction) {
        return UserCode::TlsLibrary;
    }
    UserCode::Unknown
}

fn classify(sample: &CpuSample, user_code: UserCode) -> (Activity, Mode) {
    let mode = if sample.kernel_stack.is_empty() {
        Mode::User
    } else {
        Mode::System
    };
    let activity = match (sample.handshake, user_code) {
        (true, _) => Activity::Handshake,
        (false, UserCode::TlsLibrary) => Activity::Encryption,
        (false, _) => Activity::Application,
    };
    (activity, mode)
}

impl Session {
    pub(super) fn begin_sampling(&mut self) {
        self.loaded.start_samples();
    }

    /// Takes the samples since the last time: after the process events and mappings
    /// of that time.
    pub(super) fn take_samples(&mut self) {
        let Self {
            loaded,
            table,
            registry,
            samples,
            undecodable,
            ..
        } = self;
        let probed = |process| table.maps(process, |image| registry.is_profiled(image));
        loaded.take_samples(|key, value| match CpuSample::decode(key, value, probed) {
            Some(sample) => samples.take(table, &sample),
            None => *undecodable += 1,
        });
    }

    /// Books the samples of these services: before the CPU time of the same interval.
    pub(super) fn book_samples(&mut self, services: &BTreeSet<String>) {
        for (service, counts) in self.samples.settle(services) {
            for ((activity, mode), count) in counts {
                tracing::debug!(service, ?activity, ?mode, count, "CPU samples");
            }
        }
    }
}
