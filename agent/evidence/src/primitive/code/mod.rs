//! What a function without a name computes: by its instructions, the constants in memory that it refers
//! to, and its loops.
//!
//! What is not proved is None: the number of words that code multiplies does not identify a curve.

mod aarch64;
mod constants;
mod factors;
mod loops;
mod signs;
mod step;
mod x86_64;

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::Primitive;
use crate::fingerprint::Machine;
use signs::{Operands, Signs};
use step::Flow;

/// Longer functions are looked at up to here.
pub const MAX_FUNCTION: usize = 64 << 10;
/// Code behind a jump out of a function that may still be a part of it.
const TAIL: usize = 128;
/// Code of a function that is called.
const CALLED: usize = 512;
/// Callees whose verdicts are remembered, at most.
const MAX_CALLEES: usize = 60_000;

/// A field element of Curve25519 has four or five words: a square of four takes ten multiplications.
const LEAST_WIDE: usize = 10;
/// Ten limbs of 25.5 bits: a square takes 55 multiplications.
const LEAST_SHORT: usize = 50;
/// Nine limbs of 28 and 29 bits in turns, an element of the field of P-256: a square takes 45 multiplications, and
/// a reduction cuts them all.
const LEAST_OF_NINE: usize = 45;
const LEAST_CUT: usize = 4;
/// A field element of Curve448 has eight limbs of 56 bits; its loops cut two per iteration.
const LEAST_OF_56: usize = 2;
/// An element of the field of P-521 has eight limbs of 58 bits and one of 57: a reduction carries from each to the next.
const LEAST_OF_58: usize = 8;
/// The words of the primes that compilers do not multiply by with shifts, and that few other primes have; and those of
/// 2^384 less the prime of P-384, by which s2n-bignum multiplies.
const WORDS_OF_P256: [u64; 1] = [0xffff_ffff_0000_0001];
const WORDS_OF_P384: [u64; 2] = [0xffff_ffff_0000_0000, 0xffff_ffff_ffff_fffe];
const WORDS_LESS_P384: [u64; 2] = [0xffff_ffff_0000_0001, 0xffff_ffff];
/// Additions with carry in a sum of 256-bit numbers.
const LEAST_CARRIED: usize = 3;
/// Bytes from the first to the last operand that multiplications of lanes take from one place. Beyond 521
/// bits: the longest number of a curve takes 88 of 52 bits, and 128 of 29 bits.
const LONG_OPERAND: i64 = 128;
const LONG_OPERAND_OF_29: i64 = 192;
/// A table of 16 or 32 powers.
const LEAST_COMPARED: usize = 8;
const LEAST_MASKED: usize = 16;

/// What the function at `address` computes. `memory` reads what the image has at an address: that many
/// bytes, or fewer.
pub fn by_code(
    machine: Machine,
    code: &[u8],
    address: u64,
    memory: impl Fn(u64, usize) -> Vec<u8>,
) -> Option<Primitive> {
    Image::new(machine, memory).look(code, address).primitive
}

/// End of a function without unwind record, with padding: the first place that neither the instruction before nor a branch
/// of the function reaches.
pub(super) fn end(machine: Machine, code: &[u8], address: u64) -> u64 {
    let behind = address.saturating_add(code.len() as u64);
    // Stops decoding there.
    let early = match machine {
        Machine::X86_64 => end_of(x86_64::flows(code, address), behind),
        Machine::Aarch64 => end_of(aarch64::flows(code, address), behind),
    };
    if early < behind {
        return early;
    }
    let signs = Signs::of(machine, code, address);
    end_of(signs.flows(), signs.end)
}

/// By the address of each instruction, and where it leads. `end`: of the code.
fn end_of(flows: impl Iterator<Item = (u64, Flow)>, end: u64) -> u64 {
    let mut farthest = 0;
    let mut runs = true;
    for (address, flow) in flows {
        let pads = matches!(flow, Flow::Pad | Flow::Trap);
        if !runs && farthest < address && !pads {
            return address;
        }
        if let Flow::Branch(to) | Flow::Jump(to) = flow
            && to < end
        {
            farthest = farthest.max(to);
        }
        runs = match flow {
            Flow::Next | Flow::Branch(_) | Flow::Call(_) => true,
            Flow::Pad => runs,
            Flow::Trap | Flow::Jump(_) | Flow::Return | Flow::Elsewhere => false,
        };
    }
    end
}

/// A function by its own code.
pub(super) struct Looked {
    pub(super) primitive: Option<Primitive>,
    /// It is multi-word arithmetic.
    pub(super) is_arithmetic: bool,
    /// It calls nothing.
    pub(super) is_leaf: bool,
}

/// The image that functions belong to.
pub(super) struct Image<M> {
    machine: Machine,
    memory: M,
    /// Verdicts by loops of callees, by address. Most functions are called by several.
    callees: RefCell<BTreeMap<u64, Option<Primitive>>>,
}

impl<M: Fn(u64, usize) -> Vec<u8>> Image<M> {
    /// `memory` as in [`by_code`].
    pub(super) const fn new(machine: Machine, memory: M) -> Self {
        Self {
            machine,
            memory,
            callees: RefCell::new(BTreeMap::new()),
        }
    }

    pub(super) fn look(&self, code: &[u8], address: u64) -> Looked {
        let code = code.get(..MAX_FUNCTION).unwrap_or(code);
        let signs = Signs::of(self.machine, code, address);
        Looked {
            primitive: by_constants(&signs, self).or_else(|| by_signs(&signs, self)),
            is_arithmetic: signs.carried >= LEAST_CARRIED,
            is_leaf: signs.is_leaf(),
        }
    }

    /// Reads other code of the image.
    fn signs(&self, at: u64, size: usize) -> Signs {
        Signs::of(self.machine, &(self.memory)(at, size), at)
    }

    /// What the loops of a callee prove.
    fn by_loops_at(&self, at: u64) -> Option<Primitive> {
        let mut callees = self.callees.borrow_mut();
        if let Some(known) = callees.get(&at) {
            return *known;
        }
        let found = by_loops_of_callee(self, at);
        if callees.len() < MAX_CALLEES {
            callees.insert(at, found);
        }
        found
    }
}

/// None where constants of several algorithms are referred to: tables of parameters.
fn by_constants(signs: &Signs, image: &Image<impl Fn(u64, usize) -> Vec<u8>>) -> Option<Primitive> {
    let reach = constants::REACH;
    let found = signs.references.iter().filter_map(|&reference| {
        let start = reference.saturating_sub(reach as u64);
        let bytes = (image.memory)(start, 2 * reach);
        constants::at(&bytes, usize::try_from(reference - start).ok()?)
    });
    let mut found: Vec<Primitive> = found.collect();
    found.sort_unstable();
    found.dedup();
    match found.as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}

fn by_signs(signs: &Signs, image: &Image<impl Fn(u64, usize) -> Vec<u8>>) -> Option<Primitive> {
    if is_curve25519(signs, image) {
        Some(Primitive::Curve25519)
    } else if signs.ml_kem_prime > 0 && signs.ml_kem_factor > 0 {
        Some(Primitive::MlKem)
    } else if is_p256_in_limbs(signs, image) {
        Some(Primitive::P256)
    } else if is_p521_in_limbs(signs) {
        Some(Primitive::P521)
    } else if let Some(curve) = montgomery_field(signs) {
        Some(curve)
    } else if is_exponentiation(signs) {
        Some(Primitive::RsaDh)
    } else {
        by_loops(signs, image)
    }
}

/// Field arithmetic with 2^255 = 19 or 2^256 = 38. The reduction may be a part of another function that
/// it jumps to.
fn is_curve25519(signs: &Signs, image: &Image<impl Fn(u64, usize) -> Vec<u8>>) -> bool {
    let wraps = |signs: &Signs| signs.by_38 > 0 || signs.factors.times(38) > 0;
    let tails = || signs.leaves.iter().map(|&at| image.signs(at, TAIL));
    let reduces = |tail: Signs| (wraps(&tail) || signs.leaves_with_38) && tail.wide >= 3;
    // Division by constants multiplies as widely, but carries nothing on.
    if signs.wide >= LEAST_WIDE && signs.carried * 2 >= signs.wide {
        let in_fifths = || signs.by_51 > 0 || tails().any(|tail| tail.by_51 > 0);
        return wraps(signs) || (signs.by_19 >= 2 && in_fifths()) || tails().any(reduces);
    }
    let limbs = signs.by_25 >= 4 && signs.by_26 >= 4 && signs.by_19 >= 2;
    let ladder = signs.curve_factor > 0 && signs.wide >= 4 && signs.carried * 2 >= signs.wide;
    (signs.short >= LEAST_SHORT && limbs) || ladder
}

/// In words of 32 bits: cuts limbs, also in a loop that carries from each to the next, or multiplies them and calls what
/// cuts.
fn is_p256_in_limbs(signs: &Signs, image: &Image<impl Fn(u64, usize) -> Vec<u8>>) -> bool {
    let cuts = |signs: &Signs| signs.of_28 >= LEAST_CUT && signs.of_29 >= LEAST_CUT;
    let carries = signs.of_28.min(signs.by_28) > 0 && signs.of_29.min(signs.by_29) > 0;
    let mut called = signs.calls.iter();
    cuts(signs)
        || carries
        || (signs.short >= LEAST_OF_NINE && called.any(|&at| cuts(&image.signs(at, CALLED))))
}

/// Carries follow one another. Where words hold several fields, code asks about each that it shifts out.
fn is_p521_in_limbs(signs: &Signs) -> bool {
    let branches = || {
        signs
            .flows()
            .filter(|(_, flow)| matches!(flow, Flow::Branch(_)))
    };
    signs.of_58 > 0 && signs.by_58 >= LEAST_OF_58 && branches().count() < signs.by_58
}

/// Montgomery's reduction multiplies by each word of the prime in each round, and by nothing else that is constant,
/// between the products of an element's words: half of them in a square.
fn montgomery_field(signs: &Signs) -> Option<Primitive> {
    let factors = &signs.factors;
    let products = signs.wide.saturating_sub(factors.all());
    let is_field = |words: &[u64], shared: &[u64], rounds| {
        let mut times = words.iter().map(|word| factors.times(*word));
        times.all(|times| times >= rounds && 2 * products >= rounds * times)
            && factors.are_among(&[words, shared].concat())
            && signs.carried * 2 >= signs.wide
    };
    // Where the lowest word is no factor, s2n-bignum multiplies by 2^32, and compilers shift instead.
    let of_p256: &[u64] = match factors.times(u64::MAX) {
        0 => &[1 << 32],
        _ => &[u64::MAX, 0xffff_ffff],
    };
    let of_p384 = [u64::MAX, 0xffff_ffff, 0x1_0000_0001];
    if is_field(&WORDS_OF_P256, of_p256, 4) {
        Some(Primitive::P256)
    } else if is_field(&WORDS_OF_P384, &of_p384, 6) || is_field(&WORDS_LESS_P384, &[], 6) {
        Some(Primitive::P384)
    } else {
        None
    }
}

/// Loops over numbers, its own or a callee's: numbers of any length, or limbs of Curve448.
fn by_loops(signs: &Signs, image: &Image<impl Fn(u64, usize) -> Vec<u8>>) -> Option<Primitive> {
    by_own_loops(signs).or_else(|| signs.calls.iter().find_map(|&at| image.by_loops_at(at)))
}

fn by_loops_of_callee(image: &Image<impl Fn(u64, usize) -> Vec<u8>>, at: u64) -> Option<Primitive> {
    let code = image.signs(at, CALLED);
    // Another function may follow.
    let end = end_of(code.flows(), code.end);
    let own = code.steps.partition_point(|one| one.address < end);
    loops::go_through_words(code.steps.get(..own)?).then_some(())?;
    by_own_loops(&image.signs(at, usize::try_from(end - at).ok()?))
}

/// Numbers of any length are kept in whole words. P-224 and P-384 have limbs of 56 bits like Curve448, but no loops over
/// masked ones.
fn by_own_loops(signs: &Signs) -> Option<Primitive> {
    if signs.of_56 >= LEAST_OF_56 && signs.by_56 > 0 {
        loops::go_through_words(&signs.steps).then_some(Primitive::Curve448)
    } else if signs.double_by_56 >= LEAST_OF_56 {
        None
    } else {
        loops::go_through_numbers(&signs.steps).then_some(Primitive::BigNumber)
    }
}

/// One word times all of a number that is too long for a curve, or a product with a power out of a table.
fn is_exponentiation(signs: &Signs) -> bool {
    let is_long = |operands: &Operands, least| {
        let mut places = operands.values();
        places.any(|(first, last)| last.saturating_sub(*first) >= least)
    };
    let in_lanes = signs.broadcast > 0
        && (is_long(&signs.operands_52, LONG_OPERAND)
            || signs.of_29 > 0 && is_long(&signs.operands_32, LONG_OPERAND_OF_29));
    let takes_power = signs.compared >= LEAST_COMPARED && signs.masked >= LEAST_MASKED;
    in_lanes || (takes_power && loops::go_through_numbers(&signs.steps))
}

#[cfg(test)]
mod tests;
