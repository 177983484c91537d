//! CPU time of handshakes by step, estimated where it was not measured.
//!
//! Step probes are attached in windows, so that only some handshakes are
//! measured. The CPU time of the others is divided like that of measured ones
//! of the same class. A handshake of a class without a measured one is booked
//! at once too, as unmeasured. So steps and unmeasured time add up to the CPU
//! time of all handshakes at every moment, and nothing is ever taken back: the
//! sums can be exported as counters.
//!
//! It takes two stages. The first divides a handshake into the steps of public
//! key work and the rest; the second, which needs the more expensive probes of
//! key derivation, divides the rest into key derivation and other.

use std::collections::BTreeMap;
use std::time::Duration;

use tlsprof_common::{Resumption, Step, Steps};

use super::since::sums;
use super::{Moments, OTHER};

/// The signature of a handshake that neither a probe nor cleartext showed.
const UNKNOWN: &str = "unknown";

/// Handshakes alike enough that one's division into steps speaks for another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    /// Session resumption.
    pub resumption: Resumption,
    /// Key exchange group.
    pub group: &'static str,
    /// Own signature.
    pub signature: &'static str,
}

/// CPU time and the number of handshakes that it stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// CPU time in nanoseconds.
    nanos: u64,
    /// Handshakes.
    pub handshakes: u64,
}

sums!(Pending: nanos, handshakes);
sums!(Measured: coarse, fine, unmeasured, undivided_rest, exact);
sums!(StepAccount: booked, handshakes, measured, key_derivation_measured, classes);

impl Pending {
    /// CPU time.
    pub const fn cpu(self) -> Duration {
        Duration::from_nanos(self.nanos)
    }

    const fn add(&mut self, more: Self) {
        self.nanos = self.nanos.saturating_add(more.nanos);
        self.handshakes = self.handshakes.saturating_add(more.handshakes);
    }
}

/// Key exchange, signing, verification, RSA decryption, and the rest.
type Coarse = [u64; 5];
/// Key derivation and other: the parts of the rest.
type Fine = [u64; 2];

/// What is known of one class.
#[derive(Clone, Debug, Default)]
struct Measured {
    coarse: Coarse,
    fine: Fine,
    /// Handshakes that came before any that could speak for them.
    unmeasured: Pending,
    /// The rest of handshakes that was booked as other, because no key
    /// derivation of their kind had been measured.
    undivided_rest: Pending,
    /// Steps of public-key work: the first four of [`Step::ALL`].
    exact: [Moments; 4],
}

/// The steps of one service's handshakes in one role.
#[derive(Clone, Debug, Default)]
pub struct StepAccount {
    /// Nanoseconds in each of [`Step::ALL`].
    booked: [u64; Step::COUNT],
    handshakes: u64,
    measured: u64,
    key_derivation_measured: u64,
    classes: BTreeMap<Class, Measured>,
}

impl StepAccount {
    /// CPU time of a step, measured or estimated; never decreases.
    pub fn cpu(&self, step: Step) -> Duration {
        let nanos = self.booked.get(step as usize).copied().unwrap_or(0);
        Duration::from_nanos(nanos)
    }

    /// Handshakes in which the step was measured.
    pub const fn measured_handshakes(&self, step: Step) -> u64 {
        match step {
            // What key derivation leaves.
            Step::KeyDerivation | Step::Other => self.key_derivation_measured,
            _ => self.measured,
        }
    }

    /// Handshakes that [`Self::cpu`] of that step speaks for.
    pub fn handshakes(&self, step: Step) -> u64 {
        let divided = self.handshakes - self.unmeasured().handshakes;
        match step {
            Step::KeyDerivation => divided - self.pending(|class| class.undivided_rest).handshakes,
            _ => divided,
        }
    }

    /// Handshakes of which no step is known: none alike had been measured when
    /// they came. Their time is in no step, and never decreases either.
    pub fn unmeasured(&self) -> Pending {
        self.pending(|class| class.unmeasured)
    }

    /// The account with handshakes divided whose kind was measured only after
    /// them: for a report, which is final. Counters cannot take time back.
    #[must_use]
    pub fn settled(&self) -> Self {
        let mut settled = self.clone();
        for class in self.classes.keys() {
            let Some(known) = settled.classes.get_mut(class) else {
                continue;
            };
            let unmeasured = std::mem::take(&mut known.unmeasured);
            let rest = std::mem::take(&mut known.undivided_rest);
            let [.., other] = &mut settled.booked;
            *other = other.saturating_sub(rest.nanos);
            settled.book_rest(*class, rest);
            settled.estimate(*class, unmeasured);
        }
        settled
    }

    /// What one of the four steps of public-key work costs in a handshake of the
    /// kinds wanted, by those in which it was measured; none for other steps.
    pub fn cost(&self, step: Step, wanted: impl Fn(&Class) -> bool) -> Moments {
        let those = self.classes.iter().filter(|(class, _)| wanted(class));
        let costs = those.filter_map(|(_, known)| known.exact.get(step as usize));
        costs.fold(Moments::default(), |sum, one| sum.plus(*one))
    }

    fn pending(&self, of: impl Fn(&Measured) -> Pending) -> Pending {
        let mut sum = Pending::default();
        for class in self.classes.values() {
            sum.add(of(class));
        }
        sum
    }

    /// Books one handshake of `nanos` CPU time. At most `limit` classes are
    /// kept apart; the rest are one class for each kind of resumption.
    pub(super) fn record(&mut self, class: Class, nanos: u64, steps: Option<&Steps>, limit: usize) {
        self.handshakes += 1;
        let class = if self.classes.len() < limit || self.classes.contains_key(&class) {
            class
        } else {
            Class {
                group: OTHER,
                signature: OTHER,
                ..class
            }
        };
        match steps {
            Some(steps) => self.measure(class, nanos, steps),
            None => self.estimate(
                class,
                Pending {
                    nanos,
                    handshakes: 1,
                },
            ),
        }
    }

    /// Books a measured handshake.
    fn measure(&mut self, class: Class, nanos: u64, steps: &Steps) {
        let parts = exact_parts(nanos, steps);
        let [public_key @ .., derivation, other] = parts;
        let [exchange, signing, verification, decryption] = public_key;
        let rest = derivation + other;
        let coarse = [exchange, signing, verification, decryption, rest];
        let known = self.classes.entry(class).or_default();
        for (costs, nanos) in known.exact.iter_mut().zip(public_key) {
            costs.record(Duration::from_nanos(nanos));
        }
        add(&mut known.coarse, &coarse);
        self.measured += 1;
        book_coarse(&mut self.booked, &coarse);
        if steps.key_derivation_observed {
            self.key_derivation_measured += 1;
            add(&mut known.fine, &[derivation, other]);
            book_fine(&mut self.booked, &[derivation, other]);
        } else {
            let rest = Pending {
                nanos: rest,
                handshakes: 1,
            };
            self.book_rest(class, rest);
        }
    }

    /// Books handshakes whose steps were not measured. Those with an unknown
    /// signature are divided like all of their group, or else like all of their
    /// kind of resumption.
    fn estimate(&mut self, class: Class, handshakes: Pending) {
        let any_signature = matches!(class.signature, UNKNOWN | OTHER);
        let weights = self.weights(class, any_signature, |known| known.coarse);
        if let Some(coarse) = divide(handshakes.nanos, &weights) {
            book_coarse(&mut self.booked, &coarse);
            let [.., nanos] = coarse;
            let rest = Pending {
                nanos,
                ..handshakes
            };
            self.book_rest(class, rest);
        } else {
            let known = self.classes.entry(class).or_default();
            known.unmeasured.add(handshakes);
        }
    }

    /// Books what public-key work left of some handshakes. How much of it is key
    /// derivation depends little on the signature.
    fn book_rest(&mut self, class: Class, rest: Pending) {
        let weights = self.weights(class, true, |known| known.fine);
        if let Some(fine) = divide(rest.nanos, &weights) {
            book_fine(&mut self.booked, &fine);
        } else {
            book_fine(&mut self.booked, &[0, rest.nanos]);
            let known = self.classes.entry(class).or_default();
            known.undivided_rest.add(rest);
        }
    }

    /// How measured handshakes of a class divide; with `any_signature`, if there
    /// are none, all of its group, or else all of its kind of resumption.
    fn weights<const N: usize>(
        &self,
        class: Class,
        any_signature: bool,
        of: impl Fn(&Measured) -> [u64; N],
    ) -> [u64; N] {
        let own = self.classes.get(&class).map_or([0; N], &of);
        if !any_signature || own != [0; N] {
            return own;
        }
        let first = Class {
            group: "",
            signature: "",
            ..class
        };
        let (mut of_group, mut of_resumption) = ([0; N], [0; N]);
        let alike = self.classes.range(first..);
        for (other, known) in alike.take_while(|(other, _)| other.resumption == class.resumption) {
            let parts = of(known);
            add(&mut of_resumption, &parts);
            if other.group == class.group {
                add(&mut of_group, &parts);
            }
        }
        if of_group == [0; N] {
            return of_resumption;
        }
        of_group
    }
}

/// The measured steps in nanoseconds, made to add up to `nanos` exactly.
pub(super) fn exact_parts(nanos: u64, steps: &Steps) -> [u64; Step::COUNT] {
    let mut left = nanos;
    let mut parts = steps.cpu.map(|cpu| {
        let part = u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX).min(left);
        left -= part;
        part
    });
    let [.., other] = &mut parts;
    *other += left;
    parts
}

/// Divides `total` in proportion to `weights`, exactly: what rounding leaves
/// goes to the last part. None when all weights are zero.
fn divide<const N: usize>(total: u64, weights: &[u64; N]) -> Option<[u64; N]> {
    let sum: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    if sum == 0 {
        return None;
    }
    let mut left = total;
    let mut parts = weights.map(|weight| {
        let part = u128::from(total) * u128::from(weight) / sum;
        // Never more than `total`, which fits.
        let part = u64::try_from(part).unwrap_or(left).min(left);
        left -= part;
        part
    });
    if let Some(last) = parts.last_mut() {
        *last += left;
    }
    Some(parts)
}

fn add<const N: usize>(sums: &mut [u64; N], parts: &[u64; N]) {
    for (sum, part) in sums.iter_mut().zip(parts) {
        *sum = sum.saturating_add(*part);
    }
}

/// Books all but the rest.
fn book_coarse(booked: &mut [u64; Step::COUNT], coarse: &Coarse) {
    let [exchange, signing, verification, decryption, _] = *coarse;
    add(booked, &[exchange, signing, verification, decryption, 0, 0]);
}

fn book_fine(booked: &mut [u64; Step::COUNT], fine: &Fine) {
    let [derivation, other] = *fine;
    add(booked, &[0, 0, 0, 0, derivation, other]);
}

#[cfg(test)]
mod tests;
