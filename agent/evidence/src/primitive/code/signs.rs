//! The facts that each architecture supplies about a function: instruction counts, referenced addresses, calls, and the
//! effect of each instruction on registers. The rules that judge them are shared.

use std::collections::BTreeMap;

use super::factors::Factors;
use super::step::{Does, Flow, Shift, Step};
use super::{aarch64, x86_64};
use crate::fingerprint::Machine;

/// Instructions read per function, at most.
pub(super) const MAX_INSTRUCTIONS: usize = 8192;
/// Referenced addresses checked for constants per function, at most.
const MAX_REFERENCES: usize = 256;
/// Calls followed per function, at most.
const MAX_CALLS: usize = 32;

/// ML-KEM's prime (FIPS 203, 2.4), and the factors by which libraries reduce modulo it: Barrett's of 24
/// and 26 bits, and Montgomery's; its other form, -3327, is too near to be a proof.
const ML_KEM_PRIME: i64 = 3329;
const MINUS_ML_KEM_PRIME: i64 = -ML_KEM_PRIME;
const ML_KEM_FACTORS: [i64; 3] = [5039, 20159, 62209];
/// (486662 + 2) / 4 of RFC 7748, 4.1, or one less.
const CURVE25519_FACTORS: [i64; 2] = [121_666, 121_665];

/// By base register, the first and the last place.
pub(super) type Operands = BTreeMap<u32, (i64, i64)>;

/// Facts about a function.
#[derive(Debug, Default)]
pub(super) struct Signs {
    pub(super) steps: Vec<Step>,
    /// Address after the last step.
    pub(super) end: u64,
    /// Additions with carry.
    pub(super) carried: usize,
    /// Multiplications of 64 by 64 bits to 128.
    pub(super) wide: usize,
    /// Multiplications of 64 by 64 bits to 64.
    pub(super) short: usize,
    /// Multiplications by 19, the number by which 2^255 wraps around in Curve25519.
    pub(super) by_19: usize,
    /// Wide multiplications by constants, and where these are kept.
    pub(super) factors: Factors,
    /// Multiplications by 38, the number by which 2^256 wraps around there, other than wide ones.
    pub(super) by_38: usize,
    /// Uses of the constant of Curve25519's ladder.
    pub(super) curve_factor: usize,
    pub(super) ml_kem_prime: usize,
    pub(super) ml_kem_factor: usize,
    /// Shifts by 25 and by 26 bits: limbs of 25.5 bits.
    pub(super) by_25: usize,
    pub(super) by_26: usize,
    /// Limbs of 28 and of 29 bits, cut to their length.
    pub(super) of_28: usize,
    pub(super) of_29: usize,
    /// Shifts right by 28 and by 29 bits: their carries.
    pub(super) by_28: usize,
    pub(super) by_29: usize,
    /// Carries out of limbs of 51 bits.
    pub(super) by_51: usize,
    /// Limbs of 56 bits, shifts by 56 bits, and those of them out of two registers.
    pub(super) of_56: usize,
    pub(super) by_56: usize,
    pub(super) double_by_56: usize,
    /// Limbs of 58 bits, and shifts right by 58 bits.
    pub(super) of_58: usize,
    pub(super) by_58: usize,
    /// 64 bits brought to all lanes.
    pub(super) broadcast: usize,
    /// By base register: the first and the last place from which multiplications of 52 bits, and those of 32
    /// bits in lanes, take operands.
    pub(super) operands_52: Operands,
    pub(super) operands_32: Operands,
    /// Comparisons and masks of lanes: how an entry of a table is taken without showing which.
    pub(super) compared: usize,
    pub(super) masked: usize,
    /// Places in memory.
    pub(super) references: Vec<u64>,
    /// Where jumps lead out of it.
    pub(super) leaves: Vec<u64>,
    /// With the number 38 in a register.
    pub(super) leaves_with_38: bool,
    /// Functions that it calls by their address.
    pub(super) calls: Vec<u64>,
}

impl Signs {
    /// Reads code at an address.
    pub(super) fn of(machine: Machine, code: &[u8], address: u64) -> Self {
        match machine {
            Machine::X86_64 => x86_64::signs(code, address),
            Machine::Aarch64 => aarch64::signs(code, address),
        }
    }

    /// Addresses of the steps, and where they lead.
    pub(super) fn flows(&self) -> impl Iterator<Item = (u64, Flow)> {
        self.steps.iter().map(|step| (step.address, step.flow))
    }

    /// Appends the next step of a function with these bounds. False at the limit.
    pub(super) fn take(&mut self, step: Step, (start, end): (u64, u64)) -> bool {
        match step.flow {
            Flow::Jump(to) if !(start..end).contains(&to) && self.leaves.len() < MAX_CALLS => {
                self.leaves.push(to);
                self.leaves_with_38 |= self.factors.keep(38);
            }
            Flow::Call(Some(to)) if self.calls.len() < MAX_CALLS => self.calls.push(to),
            _ => {}
        }
        self.wide += usize::from(matches!(step.does, Does::Multiply(_)));
        _ = self.factors.note(&step);
        self.steps.push(step);
        self.steps.len() < MAX_INSTRUCTIONS
    }

    /// Whether it calls nothing, nor jumps out of it.
    pub(super) fn is_leaf(&self) -> bool {
        let leads_out = |step: &Step| matches!(step.flow, Flow::Call(_) | Flow::Elsewhere);
        self.leaves.is_empty() && !self.steps.iter().any(leads_out)
    }

    pub(super) fn note_reference(&mut self, address: u64) {
        if self.references.len() < MAX_REFERENCES {
            self.references.push(address);
        }
    }

    /// Counts an immediate value that is neither a mask nor a distance.
    pub(super) fn note_number(&mut self, number: i64) {
        match number {
            ML_KEM_PRIME | MINUS_ML_KEM_PRIME => self.ml_kem_prime += 1,
            _ => self.curve_factor += usize::from(CURVE25519_FACTORS.contains(&number)),
        }
    }

    /// Counts a constant factor of a multiplication.
    pub(super) fn note_factor(&mut self, number: i64) {
        self.by_19 += usize::from(number == 19);
        self.by_38 += usize::from(number == 38);
        self.ml_kem_factor += usize::from(ML_KEM_FACTORS.contains(&number));
    }

    pub(super) fn note_shift(&mut self, shift: Shift) {
        match (shift.by(), shift) {
            (25, _) => self.by_25 += 1,
            (26, _) => self.by_26 += 1,
            (28, Shift::Right(_)) => self.by_28 += 1,
            (29, Shift::Right(_)) => self.by_29 += 1,
            (51, Shift::Right(_) | Shift::Double(_)) => self.by_51 += 1,
            (56, _) => {
                self.by_56 += 1;
                self.double_by_56 += usize::from(shift == Shift::Double(56));
            }
            (58, Shift::Right(_) | Shift::Double(_)) => self.by_58 += 1,
            _ => {}
        }
    }

    /// Counts a value masked to that many bits.
    pub(super) fn note_cut(&mut self, bits: u32) {
        match bits {
            28 => self.of_28 += 1,
            29 => self.of_29 += 1,
            56 => self.of_56 += 1,
            58 => self.of_58 += 1,
            _ => {}
        }
    }
}
