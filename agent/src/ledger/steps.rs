//! CPU time of handshakes by step, estimated where it was not measured.
//!
//! Step probes are attached in windows, so that only some handshakes are
//! measured. The CPU time of the others is divided as that of the measured ones
//! of the same class. A handshake that comes before the first measured one of
//! its class waits, and is divided when that one comes. So every time is booked
//! once and nothing is ever taken back: the sums can be exported as counters.
//!
//! It takes two stages. The first divides a handshake into the steps of public
//! key work and the rest; the second, for which the dearer probes of key
//! derivation are needed, divides the rest into key derivation and other.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::evidence::{Resumption, Step, Steps};

use super::{Moments, OTHER};

/// So many handshakes of a class wait for key derivation to be measured; then
/// it is held to be unmeasurable there, and the rest is booked as other.
const WAITING_FOR_KEY_DERIVATION: u64 = 10_000;

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

impl Pending {
    /// CPU time.
    pub const fn cpu(self) -> Duration {
        Duration::from_nanos(self.nanos)
    }

    const fn add(&mut self, nanos: u64, handshakes: u64) {
        self.nanos = self.nanos.saturating_add(nanos);
        self.handshakes = self.handshakes.saturating_add(handshakes);
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
    coarse_pending: Pending,
    fine: Fine,
    fine_pending: Pending,
    /// Steps of public-key work: the first four of [`Step::ALL`].
    exact: [Moments; 4],
}

/// The steps of one service's handshakes in one role.
#[derive(Clone, Debug, Default)]
pub struct StepAccount {
    /// Nanoseconds in each of [`Step::ALL`].
    booked: [u64; 6],
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
        let divided = self.handshakes - self.undivided().handshakes;
        match step {
            Step::KeyDerivation | Step::Other => divided - self.rest_undivided().handshakes,
            _ => divided,
        }
    }

    /// Handshakes of which no step is known, because none of their class was
    /// measured yet. Their time is in no step.
    pub fn undivided(&self) -> Pending {
        self.pending(|class| class.coarse_pending)
    }

    /// What is left of handshakes after public-key work, where it is not known
    /// yet how much of it is key derivation. This time is in no step either.
    pub fn rest_undivided(&self) -> Pending {
        self.pending(|class| class.fine_pending)
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
            let pending = of(class);
            sum.add(pending.nanos, pending.handshakes);
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
        let known = self.classes.entry(class).or_default();
        match steps {
            Some(steps) => {
                self.measured += 1;
                self.key_derivation_measured += u64::from(steps.key_derivation_observed);
                known.measure(&mut self.booked, nanos, steps);
            }
            None => known.estimate(&mut self.booked, nanos, 1),
        }
    }
}

impl Measured {
    /// Books a measured handshake, and what waited for it.
    fn measure(&mut self, booked: &mut [u64; 6], nanos: u64, steps: &Steps) {
        let parts = exact_parts(nanos, steps);
        for (costs, nanos) in self.exact.iter_mut().zip(parts) {
            costs.record(Duration::from_nanos(nanos));
        }
        let [
            exchange,
            signing,
            verification,
            decryption,
            derivation,
            other,
        ] = parts;
        let coarse = [
            exchange,
            signing,
            verification,
            decryption,
            derivation + other,
        ];
        add(&mut self.coarse, &coarse);
        book_coarse(booked, &coarse);
        if steps.key_derivation_observed {
            let fine = [derivation, other];
            add(&mut self.fine, &fine);
            book_fine(booked, &fine);
            let waiting = std::mem::take(&mut self.fine_pending);
            self.divide_rest(booked, waiting.nanos, waiting.handshakes);
        } else {
            self.divide_rest(booked, derivation + other, 1);
        }
        let waiting = std::mem::take(&mut self.coarse_pending);
        if waiting.handshakes > 0 {
            self.estimate(booked, waiting.nanos, waiting.handshakes);
        }
    }

    /// Books handshakes whose steps are not known, or makes them wait.
    fn estimate(&mut self, booked: &mut [u64; 6], nanos: u64, handshakes: u64) {
        match divide(nanos, &self.coarse) {
            Some(coarse) => {
                book_coarse(booked, &coarse);
                let [.., rest] = coarse;
                self.divide_rest(booked, rest, handshakes);
            }
            None => self.coarse_pending.add(nanos, handshakes),
        }
    }

    /// Books what public-key work left of some handshakes, or makes it wait.
    fn divide_rest(&mut self, booked: &mut [u64; 6], nanos: u64, handshakes: u64) {
        if let Some(fine) = divide(nanos, &self.fine) {
            book_fine(booked, &fine);
            return;
        }
        self.fine_pending.add(nanos, handshakes);
        if self.fine_pending.handshakes > WAITING_FOR_KEY_DERIVATION {
            let given_up = std::mem::take(&mut self.fine_pending);
            book_fine(booked, &[0, given_up.nanos]);
        }
    }
}

/// The measured steps in nanoseconds, made to add up to `nanos` exactly.
fn exact_parts(nanos: u64, steps: &Steps) -> [u64; 6] {
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
fn book_coarse(booked: &mut [u64; 6], coarse: &Coarse) {
    let [exchange, signing, verification, decryption, _] = *coarse;
    add(booked, &[exchange, signing, verification, decryption, 0, 0]);
}

fn book_fine(booked: &mut [u64; 6], fine: &Fine) {
    let [derivation, other] = *fine;
    add(booked, &[0, 0, 0, 0, derivation, other]);
}
