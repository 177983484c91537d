//! How far steps by samples and steps by library probes agree: CPU time of the same handshakes over the same
//! time.
//!
//! It is booked in rounds. A round ends when all CPU time up to a reading of the kernel's accounts is divided
//! among its samples, which can be seconds after the reading. The probes' side has the handshakes that ended
//! before that reading; later ones belong to the next round. A round is booked from both sources, or not at all:
//! the samples show all handshakes, so probes must have measured all of them too.

use std::collections::BTreeMap;
use std::time::Duration;

use tlsprof_common::Step;
use tlsprof_evidence::Handshake;

use super::StepSet;
use crate::limits::bounded_nanos;
use crate::steps::exact_parts;

/// After handshakes without measured steps, nothing is compared for this time. Samples of handshakes in progress
/// are on one side only where step probes come and go, as in windows of 1 s.
const SETTLED: Duration = Duration::from_secs(10);
/// The steps of some handshakes are never measured, such as those in a process that has just started. They may
/// use one part in this many of the CPU time.
const STRAY: u64 = 100;

/// CPU time in nanoseconds of handshakes that ended.
#[derive(Clone, Copy, Debug, Default)]
struct Probed {
    /// Measured, in each of [`Step::ALL`].
    steps: [u64; Step::COUNT],
    /// Of handshakes whose steps were not measured.
    unmeasured: u64,
}

impl Probed {
    fn add(&mut self, more: Self) {
        for (sum, part) in self.steps.iter_mut().zip(more.steps) {
            *sum = sum.saturating_add(part);
        }
        self.unmeasured = self.unmeasured.saturating_add(more.unmeasured);
    }

    fn is_whole(&self) -> bool {
        let parts = self.steps.iter();
        let all = parts.fold(self.unmeasured, |sum, part| sum.saturating_add(*part));
        self.unmeasured <= all / STRAY
    }
}

/// CPU time by step, from both sources.
#[derive(Clone, Debug, Default)]
pub(super) struct StepAgreement {
    /// Handshakes that ended since the last reading of CPU time.
    since_reading: Probed,
    /// Those of this round that ended before.
    up_to_reading: Probed,
    /// The last reading before which steps were not measured.
    unmeasured_at: Option<Duration>,
    /// At the end of the last round: CPU time by step from samples, and that without samples.
    sampled: BTreeMap<StepSet, Duration>,
    unattributed: Duration,
    /// By library probes, and by samples.
    booked: BTreeMap<StepSet, [Duration; 2]>,
}

impl StepAgreement {
    pub(super) fn record(&mut self, handshake: &Handshake) {
        let nanos = bounded_nanos(handshake.cpu);
        self.since_reading.add(match &handshake.steps {
            Some(steps) => Probed {
                steps: exact_parts(nanos, steps),
                unmeasured: 0,
            },
            None => Probed {
                unmeasured: nanos,
                ..Probed::default()
            },
        });
    }

    /// CPU time was read: that of the handshakes so far is in it.
    pub(super) fn note_reading(&mut self, now: Duration) {
        let new = std::mem::take(&mut self.since_reading);
        if !new.is_whole() {
            self.unmeasured_at = Some(now);
        }
        self.up_to_reading.add(new);
    }

    /// All CPU time up to the last reading is divided. `sampled`: CPU time of all handshakes by step, from
    /// samples; `unattributed`: CPU time that had none.
    pub(super) fn end_round(
        &mut self,
        sampled: impl Iterator<Item = (StepSet, Duration)>,
        unattributed: Duration,
        now: Duration,
    ) {
        let probed = std::mem::take(&mut self.up_to_reading);
        let before = std::mem::replace(&mut self.sampled, sampled.collect());
        let is_lost = std::mem::replace(&mut self.unattributed, unattributed) != unattributed;
        let is_settling = |at| now < at + SETTLED;
        if is_lost || self.unmeasured_at.is_some_and(is_settling) {
            return;
        }
        for (step, nanos) in Step::ALL.into_iter().zip(probed.steps) {
            self.book(
                StepSet::of(step),
                [Duration::from_nanos(nanos), Duration::ZERO],
            );
        }
        for (steps, cpu) in self.sampled.clone() {
            let new = cpu.saturating_sub(before.get(&steps).copied().unwrap_or_default());
            self.book(steps, [Duration::ZERO, new]);
        }
    }

    fn book(&mut self, steps: StepSet, new: [Duration; 2]) {
        if new == [Duration::ZERO; 2] {
            return;
        }
        // Key derivation is probed in windows of its own; outside of these, the probes have it in `other`.
        let steps = match steps == StepSet::of(Step::KeyDerivation) {
            true => StepSet::of(Step::Other),
            false => steps,
        };
        let sums = self.booked.entry(steps).or_default();
        for (sum, part) in sums.iter_mut().zip(new) {
            *sum = sum.saturating_add(part);
        }
    }

    /// CPU time by library probes, and by samples; it never decreases.
    pub(super) fn booked(&self) -> impl Iterator<Item = (StepSet, [Duration; 2])> {
        self.booked.iter().map(|(steps, cpu)| (*steps, *cpu))
    }
}

#[cfg(test)]
mod tests;
