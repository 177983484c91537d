//! What machine code is for, by what its instructions are made of: no symbols needed.
//!
//! A sampled address is always the first byte of an instruction, so that code can be
//! decoded forward from it. Ciphers give themselves away within a few instructions: they
//! use instructions that nothing else uses, or rotate by amounts that are theirs alone.
//! Whatever is not proved so is [`Kind::Other`]: a false alarm costs more trust than a
//! miss costs time.
//!
//! The answer depends on the bytes alone, not on where they are: code that a compiler has
//! made at run time is as good as a library's, and [`Cache`] can never be out of date.

mod aarch64;
mod cache;
pub mod compiled;
mod judge;
mod marks;
mod x86_64;

#[cfg(test)]
mod tests;

pub use cache::{Answers, Cache};
pub use judge::Kind;

/// Whose instructions these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// x86-64.
    X86_64,
    /// AArch64.
    Aarch64,
}

impl Machine {
    /// The one that this program was built for, and profiles.
    pub(crate) const HOST: Self = if cfg!(target_arch = "aarch64") {
        Self::Aarch64
    } else {
        Self::X86_64
    };
}

/// Most bytes that are looked at before the sampled instruction, and from it on.
const MAX_BYTES: usize = 128;

/// What the code around an instruction of this host does: it begins at `code[at]`.
///
/// Takes any bytes, and microseconds. 128 bytes on either side are all that counts; without
/// those before, near the end of a loop or a function there is less evidence.
pub fn classify(code: &[u8], at: usize) -> Kind {
    classify_for(Machine::HOST, code, at)
}

/// Like [`classify`], for the instructions of any machine.
pub fn classify_for(machine: Machine, code: &[u8], at: usize) -> Kind {
    let first = at.saturating_sub(MAX_BYTES);
    let code = code.get(first..).unwrap_or_default();
    let at = at - first;
    let code = code.get(..at + MAX_BYTES).unwrap_or(code);
    let marks = match machine {
        Machine::X86_64 => x86_64::marks(code, at),
        Machine::Aarch64 => aarch64::marks(code, at),
    };
    judge::judge(&marks)
}
