//! Steps of handshakes by samples: where no probe in the TLS library measures them.
//!
//! A sample in a handshake shows what its code computes ([`Primitive`]), and what the handshakes
//! negotiated shows which steps compute that. Where two steps may have computed it, the time is
//! theirs together; where none can, it is `other`. Where one of its callers has a name that says the step, it is
//! that one, whatever the code computes.
//!
//! A library that has code of its own for an algorithm uses it: arithmetic on big numbers counts for
//! what the library has no such code for, and if there is nothing, for RSA and ECDSA.

#![allow(clippy::cast_precision_loss, reason = "statistics")]

mod agreement;
mod assign;
mod step_set;
#[cfg(test)]
mod tests;
mod uses;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tlsprof_common::Step;
use tlsprof_evidence::Handshake;
use tlsprof_evidence::activity::Activity;
use tlsprof_evidence::primitive::Primitive;

use super::cpu::Part;
use super::interval::{Interval, of_share};
use super::since::{Since as _, sums};
use super::{CpuAccount, PrimitiveAccount};
use agreement::StepAgreement;
use assign::{Assignment, hidden_kind};
pub use step_set::StepSet;
use uses::{Codes, Use, VERIFICATION};

/// So many samples, and this share of all, are no accident.
const SIGNIFICANT: (u64, f64) = (5, 0.01);
/// So many samples of a signature's own code, and this share of all, tell the kind of its key.
const TELLING: (u64, f64) = (20, 0.02);
/// So much of arithmetic on big numbers in code for one algorithm alone is most of it: what is left of it
/// in other code is little.
const ENOUGH_OWN: f64 = 0.05;
/// Others are never computed with numbers of any length where a library has code of its own for them. For these
/// it may have some functions, and loops for the rest: P-384 in ring.
const PARTLY_OWN: [Primitive; 3] = [Primitive::RsaDh, Primitive::P384, Primitive::P521];
/// So much of public-key arithmetic in big numbers is no part of ECDSA's.
const MOSTLY_RSA: f64 = 0.2;
const CURVES: [Primitive; 5] = [
    Primitive::P256,
    Primitive::P384,
    Primitive::P521,
    Primitive::Curve25519,
    Primitive::Curve448,
];
/// What handshakes negotiated explains samples for one to two of these.
const GENERATION: Duration = Duration::from_secs(30);

/// CPU time in handshakes of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampledStep {
    /// The step; several where they cannot be separated.
    pub steps: StepSet,
    /// CPU time, scaled to what the kernel accounts.
    pub cpu: Duration,
    /// Samples that it rests on.
    pub samples: u64,
    /// Its share (0 to 1) of the CPU time of handshakes.
    pub share: f64,
    /// Limits of `share` in 95% of cases, by the number of samples.
    pub limits: Interval,
}

/// What handshakes negotiated, and CPU time by step for counters.
#[derive(Clone, Debug, Default)]
pub(super) struct StepSamples {
    /// Of any kind: abbreviated ones may do no public-key work.
    handshakes: u64,
    /// Of all handshakes, how often.
    uses: BTreeMap<Use, u64>,
    /// The same when the last generation began, and the one before.
    before: [BTreeMap<Use, u64>; 2],
    turned: Duration,
    /// What is in `booked`.
    taken: BTreeMap<(Primitive, Option<Step>), Part>,
    booked: BTreeMap<StepSet, Part>,
    agreement: StepAgreement,
}

// Counters, and what they are made of, are those of the whole account alone.
sums!(StepSamples: handshakes, uses; empty: before, turned, taken, booked, agreement);

impl StepSamples {
    pub(super) fn record(&mut self, handshake: &Handshake) {
        self.agreement.record(handshake);
        self.handshakes += 1;
        for one in uses::of(handshake) {
            *self.uses.entry(one).or_default() += 1;
        }
    }

    /// Those of all samples, by what all handshakes negotiated; most CPU time first.
    pub(super) fn steps(&self, activities: &CpuAccount, verifies: bool) -> Vec<SampledStep> {
        if self.handshakes == 0 {
            return Vec::new();
        }
        let computed = activities.primitives();
        let mut uses = kinds(&self.uses);
        uses.extend(verifies.then_some(VERIFICATION));
        let assignment = assignment(&uses, computed);
        let mut sums: BTreeMap<StepSet, Part> = BTreeMap::new();
        for (primitive, caller, part) in computed.parts(Activity::Handshake) {
            if part != Part::default() {
                let steps = assignment.steps(primitive, caller);
                sums.entry(steps).or_default().add(part);
            }
        }
        let counted = activities.samples().max(1) as f64;
        shares(&sums, activities.effective_samples() / counted)
    }

    /// The kind of key that signed where that does not travel in clear.
    pub(super) fn hidden_signature(&self, computed: &PrimitiveAccount) -> Option<&'static str> {
        let (sampled, significant) = codes(computed);
        let (kind, own) = hidden_kind(&kinds(&self.uses), sampled, significant)?;
        let (least, share) = TELLING;
        let [own, unknown] = [own, Primitive::PublicKey].map(|one| samples(computed, one));
        let enough = own >= least && own as f64 >= share * all_samples(computed) as f64;
        // Unknown code may have signed as well.
        (enough && own > unknown).then_some(kind)
    }

    /// What was booked.
    pub(super) fn counters(&self) -> impl Iterator<Item = (StepSet, Duration)> {
        let booked = self.booked.iter();
        booked.map(|(steps, part)| (*steps, part.cpu()))
    }

    /// What was booked over the same time by library probes and from samples.
    pub(super) fn agreement(&self) -> impl Iterator<Item = (StepSet, [Duration; 2])> {
        self.agreement.booked()
    }

    /// The kernel's CPU time was read: that of all handshakes so far is in it.
    pub(super) fn note_reading(&mut self, now: Duration) {
        self.agreement.note_reading(now);
    }

    /// Books what has come since the last time by what was negotiated of late.
    /// `verifies`: probes measured the verification of certificates.
    pub(super) fn follow(&mut self, activities: &CpuAccount, verifies: bool, now: Duration) {
        if self.handshakes == 0 {
            return;
        }
        let computed = activities.primitives();
        if now >= self.turned + GENERATION {
            let [newest, older] = &mut self.before;
            *older = std::mem::replace(newest, self.uses.clone());
            self.turned = now;
        }
        let [_, older] = &self.before;
        let mut uses = kinds(&self.uses.since(older));
        if uses.is_empty() {
            uses = kinds(&self.uses);
        }
        uses.extend(verifies.then_some(VERIFICATION));
        let assignment = assignment(&uses, computed);
        for (primitive, caller, part) in computed.parts(Activity::Handshake) {
            let taken = self.taken.entry((primitive, caller)).or_default();
            let new = part.since(taken);
            *taken = part;
            if new != Part::default() {
                let steps = assignment.steps(primitive, caller);
                self.booked.entry(steps).or_default().add(new);
            }
        }
        if activities.all_handshakes_divided() {
            let sampled = self.booked.iter();
            let sampled = sampled.map(|(steps, part)| (*steps, part.cpu()));
            let unattributed = activities.unattributed().total();
            self.agreement.end_round(sampled, unattributed, now);
        }
    }
}

fn kinds(uses: &BTreeMap<Use, u64>) -> BTreeSet<Use> {
    uses.keys().copied().collect()
}

/// `weight`: of a sample, to one of those that are all taken at one rate.
fn shares(sums: &BTreeMap<StepSet, Part>, weight: f64) -> Vec<SampledStep> {
    let all: u64 = sums.values().map(|part| part.samples).sum();
    let cpu: Duration = sums.values().map(|part| part.cpu()).sum();
    let cpu = cpu.as_secs_f64().max(f64::MIN_POSITIVE);
    let mut steps: Vec<SampledStep> = sums
        .iter()
        .map(|(&steps, part)| {
            let share = part.cpu().as_secs_f64() / cpu;
            SampledStep {
                steps,
                cpu: part.cpu(),
                samples: part.samples,
                share,
                limits: of_share(share, weight * all as f64),
            }
        })
        .collect();
    steps.sort_by_key(|one| std::cmp::Reverse(one.cpu));
    steps
}

fn assignment(uses: &BTreeSet<Use>, computed: &PrimitiveAccount) -> Assignment {
    let (sampled, significant) = codes(computed);
    Assignment::new(uses, sampled, significant)
}

fn samples(computed: &PrimitiveAccount, primitive: Primitive) -> u64 {
    computed.part(Activity::Handshake, primitive).samples
}

fn all_samples(computed: &PrimitiveAccount) -> u64 {
    let each = Primitive::ALL.map(|primitive| samples(computed, primitive));
    each.iter().sum()
}

/// Code that was sampled, and code that was sampled more often than by chance.
fn codes(computed: &PrimitiveAccount) -> (Codes, Codes) {
    let samples = |primitive| samples(computed, primitive);
    let all = all_samples(computed);
    let (least, share) = SIGNIFICANT;
    let with = |is: &dyn Fn(u64) -> bool| {
        let those = Primitive::ALL.into_iter().filter(|one| is(samples(*one)));
        those.fold(Codes::NONE, |set, one| set.and(Codes::of(&[one])))
    };
    // One stray sample must not decide what all others are.
    let significant = with(&|count| count >= least && count as f64 >= share * all as f64);
    // Padding has a name where exponentiation has none.
    let general = samples(Primitive::BigNumber);
    let is_little = |one: &Primitive| {
        let own = samples(*one);
        (own as f64) < ENOUGH_OWN * (own + general) as f64
    };
    let little = PARTLY_OWN.into_iter().filter(is_little);
    let sampled = little.fold(significant, |set, one| set.without(Codes::of(&[one])));
    // ECDSA has a little of it; of an RSA signature it is most.
    let curves = CURVES.into_iter().map(samples).sum::<u64>();
    let significant = match general as f64 >= MOSTLY_RSA * (general + curves) as f64 {
        true => significant,
        false => significant.without(Codes::of(&[Primitive::BigNumber])),
    };
    (sampled, significant)
}
