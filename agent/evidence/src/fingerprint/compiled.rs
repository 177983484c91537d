//! ChaCha20-Poly1305 and elliptic curves as a Java virtual machine compiles them, recognised by more code than a
//! sample has.
//!
//! Up to Java 19 there are no instructions of its own for it. ChaCha20 is recognised by its rotations, but
//! before and after its rounds by nothing. Poly1305 is arithmetic on five limbs of 26 bits
//! (sun.security.util.math.intpoly.IntegerPolynomial1305): a few of its instructions are like those
//! of any other code, or of Java's elliptic curves, but all that belong to one multiplication are not:
//!
//! - 25 products for a block, 15 for a square. The curves in limbs of 26 bits have ten limbs, and 100
//!   products (55); the others have other limbs.
//! - What is above 2^130 comes back multiplied by 5, since the prime is 2^130 - 5. No curve has that.
//! - Limbs carry by shifts of 26 bits.
//!
//! The split of a block of the message into limbs is as telling, where it is apart from that.

mod stretch;
mod verdict;

use super::Machine;

/// So many bytes before an instruction and from it on are looked at: the Poly1305 of Java 17 and 25
/// takes some 1700.
pub const REACH: usize = 2048;

/// Whether the instruction at `code[at]` belongs to compiled ChaCha20 or Poly1305.
///
/// Takes any bytes; of more than [`REACH`] on either side, the nearest. Known on x86-64 alone.
pub fn is_chacha20_poly1305(code: &[u8], at: usize) -> bool {
    is_chacha20_poly1305_for(Machine::HOST, code, at)
}

/// Like [`is_chacha20_poly1305`], for the instructions of any machine.
pub fn is_chacha20_poly1305_for(machine: Machine, code: &[u8], at: usize) -> bool {
    shows(machine, code, at, verdict::is_cipher)
}

/// Whether it belongs to an elliptic curve in many limbs (sun.security.util.math.intpoly), as [`is_chacha20_poly1305`].
/// Compiled code has no constants that tell the curves apart.
pub fn is_curve(code: &[u8], at: usize) -> bool {
    is_curve_for(Machine::HOST, code, at)
}

/// Like [`is_curve`], for the instructions of any machine.
pub fn is_curve_for(machine: Machine, code: &[u8], at: usize) -> bool {
    shows(machine, code, at, verdict::is_curve)
}

fn shows(machine: Machine, code: &[u8], at: usize, what: verdict::Verdict) -> bool {
    let first = at.saturating_sub(REACH);
    let code = code.get(first..).unwrap_or_default();
    let at = at - first;
    let code = code.get(..at + REACH).unwrap_or(code);
    match machine {
        Machine::X86_64 if at < code.len() => {
            verdict::is_within(&stretch::signs(code, at), at, what)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
