//! Constants that wide multiplications take as a factor: what a number wraps around at, and the words of a prime by
//! which Montgomery's reduction multiplies, word by word.

use std::collections::BTreeMap;

use iced_x86::{Code as Encoding, FlowControl, Instruction, Mnemonic as M, Register};

/// How often each constant is a factor.
#[derive(Debug, Default)]
pub(super) struct Factors {
    times: BTreeMap<u64, usize>,
    kept: BTreeMap<Register, u64>,
}

impl Factors {
    /// Whether the next instruction is a wide multiplication by a constant.
    pub(super) fn note(&mut self, one: &Instruction) -> bool {
        let to = one.op0_register().full_register();
        if is_wide(one) {
            let last = one.op_register(one.op_count().saturating_sub(1));
            let (other, results) = match one.mnemonic() {
                M::Mulx => (Register::RDX, [to, one.op1_register()]),
                _ => (Register::RAX, [Register::RAX, Register::RDX]),
            };
            let factor = [last, other]
                .into_iter()
                .find_map(|one| self.kept.get(&one));
            let is_constant = factor.is_some();
            if let Some(factor) = factor {
                *self.times.entry(*factor).or_default() += 1;
            }
            self.kept.retain(|one, _| !results.contains(one));
            return is_constant;
        }
        let value = match one.mnemonic() {
            M::Cmp | M::Test | M::Push => return false,
            M::Mov => immediate(one).or_else(|| self.kept.get(&one.op1_register()).copied()),
            _ => None,
        };
        if one.flow_control() == FlowControl::Call {
            self.kept.clear();
        }
        match value {
            Some(value) if to.is_gpr64() => _ = self.kept.insert(to, value),
            _ => _ = self.kept.remove(&to),
        }
        false
    }

    /// Whether a register holds that number.
    pub(super) fn keep(&self, number: u64) -> bool {
        self.kept.values().any(|one| *one == number)
    }

    pub(super) fn times(&self, factor: u64) -> usize {
        self.times.get(&factor).copied().unwrap_or_default()
    }

    /// Multiplications by any constant.
    pub(super) fn all(&self) -> usize {
        self.times.values().sum()
    }

    /// Whether there are no others.
    pub(super) fn are_among(&self, those: &[u64]) -> bool {
        self.times.keys().all(|one| those.contains(one))
    }
}

/// A number for the whole register: 32 bits are extended with zeros.
fn immediate(one: &Instruction) -> Option<u64> {
    let value = one.try_immediate(1).ok()?;
    match one.op0_register().size() {
        8 => Some(value),
        4 => Some(value & u64::from(u32::MAX)),
        _ => None,
    }
}

/// Multiplies 64 by 64 bits to 128.
pub(super) fn is_wide(one: &Instruction) -> bool {
    matches!(
        one.code(),
        Encoding::Mul_rm64 | Encoding::VEX_Mulx_r64_r64_rm64
    )
}
