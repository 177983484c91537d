//! Functions around arithmetic on big numbers, by which functions call which: compiled code that compares,
//! copies and shifts such numbers has nothing of its own that proves it.
//!
//! A function belongs to it if half of what it calls does, or if a quarter of its callers do, two at
//! least, or a fifth of many: these prove nothing about others. Code that everything calls, such as
//! allocators, has no share in this.

use super::Primitive;
use crate::fingerprint::Machine;

/// A function belongs to arithmetic if this part of its callees does.
const CALLED: (usize, usize) = (1, 2);
/// Or if this part of its callers does, and at least this number.
const CALLING: (usize, usize) = (1, 4);
const LEAST_CALLERS: usize = 2;
/// Or this part of them, and at least that number.
const MANY_CALLING: (usize, usize) = (1, 5);
const MANY_CALLERS: usize = 7;
/// A function with more callers serves all of the program.
const MOST_CALLERS: usize = 100;
/// A helper with more callers proves nothing about them: an allocator, for example.
const MOST_SERVED: usize = 50;
/// In each round, what was found in the last one counts: so far from what is proved, chains of calls lead.
/// Farther, they lead out of arithmetic (docs/journal/2026-11-25-steps-on-other-stacks.md).
const ROUNDS: usize = 6;

/// A step of an exponentiation calls no more functions.
const MOST_CALLED: usize = 4;

/// Curves with code of their own.
pub(super) const CURVES: [Primitive; 4] = [
    Primitive::P256,
    Primitive::P384,
    Primitive::P521,
    Primitive::Curve25519,
];

/// Behind the last function of a library there may be so much code that is not described.
const LONGEST_GAP: u64 = 1 << 20;
const CALL: u8 = 0xe8;
const JUMP: u8 = 0xe9;

/// The functions that code calls or jumps to: their places in `starts`, which is sorted.
pub(super) fn called_by(machine: Machine, code: &[u8], address: u64, starts: &[u64]) -> Vec<usize> {
    let own = starts.binary_search(&address).ok();
    let targets = targets(machine, code, address).map(|(target, _)| target);
    let called = targets.filter_map(|target| starts.binary_search(&target).ok());
    let mut found: Vec<usize> = called.filter(|one| Some(*one) != own).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Call targets between the described functions, which are in order: hand-written assembly without unwind records.
/// Includes tail calls of described functions on AArch64, where every word is one instruction. Other jumps may stay within
/// one undescribed function.
pub(super) fn called_between(
    machine: Machine,
    code: &[u8],
    address: u64,
    functions: &[(u64, u64)],
) -> impl Iterator<Item = u64> {
    let own = address..address.saturating_add(code.len() as u64);
    let is_described = functions
        .binary_search_by_key(&address, |(first, _)| *first)
        .is_ok();
    let jumps_out = machine == Machine::Aarch64 && is_described;
    let leads_there = move |(target, how): &(u64, How)| match how {
        How::Call => true,
        How::Jump => jumps_out && !own.contains(target),
    };
    let targets = targets(machine, code, address).filter(leads_there);
    let targets = targets.map(|(target, _)| target);
    targets.filter(|target| is_between(*target, functions))
}

/// Whether an address is behind a described function, and in none.
pub(super) fn is_between(address: u64, functions: &[(u64, u64)]) -> bool {
    let after = functions.partition_point(|(first, _)| *first <= address);
    let before = after.checked_sub(1).and_then(|at| functions.get(at));
    before.is_some_and(|(_, end)| (*end..end.saturating_add(LONGEST_GAP)).contains(&address))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Call,
    Jump,
}

/// Where calls and jumps lead.
fn targets(
    machine: Machine,
    code: &[u8],
    address: u64,
) -> Box<dyn Iterator<Item = (u64, How)> + '_> {
    match machine {
        Machine::X86_64 => Box::new(targets_on_x86_64(code, address)),
        Machine::Aarch64 => Box::new(targets_on_aarch64(code, address)),
    }
}

/// They are found by their bytes; what only looks like one hardly ever leads to the beginning of a function.
fn targets_on_x86_64(code: &[u8], address: u64) -> impl Iterator<Item = (u64, How)> {
    code.windows(5).enumerate().filter_map(move |(at, bytes)| {
        let &[first, a, b, c, d] = bytes else {
            return None;
        };
        let how = match first {
            CALL => How::Call,
            JUMP => How::Jump,
            _ => return None,
        };
        let distance = i64::from(i32::from_le_bytes([a, b, c, d]));
        let next = address.wrapping_add(at as u64).wrapping_add(5);
        Some((next.wrapping_add_signed(distance), how))
    })
}

/// BL, B.
fn targets_on_aarch64(code: &[u8], address: u64) -> impl Iterator<Item = (u64, How)> {
    let places = (0_u64..).map(move |at| address.wrapping_add(4 * at));
    let words = code.as_chunks::<4>().0.iter().zip(places);
    words.filter_map(|(word, at)| {
        let word = u32::from_le_bytes(*word);
        let how = match word >> 26 {
            0b10_0101 => How::Call,
            0b00_0101 => How::Jump,
            _ => return None,
        };
        // A signed number of instructions.
        let distance = i64::from((word << 6).cast_signed() >> 4);
        Some((at.wrapping_add_signed(distance), how))
    })
}

/// Which functions call which, by place.
pub(super) struct Calls {
    called: Vec<Vec<usize>>,
    callers: Vec<Vec<usize>>,
}

impl Calls {
    /// `called`: what each function calls.
    pub(super) fn new(called: Vec<Vec<usize>>) -> Self {
        let mut callers = vec![Vec::new(); called.len()];
        for (caller, called) in called.iter().enumerate() {
            for one in called {
                if let Some(callers) = callers.get_mut(*one) {
                    callers.push(caller);
                }
            }
        }
        Self { called, callers }
    }

    fn computes(&self, one: usize, belongs: &[bool], computes: &[bool]) -> bool {
        let serves_much = |one: usize| {
            let callers = of(&self.callers, one).len();
            has(belongs, one) && !has(computes, one) && callers > MOST_SERVED
        };
        let called = of(&self.called, one).iter().copied();
        let called = called.filter(|one| !self.is_common(*one) && !serves_much(*one));
        let called: Vec<usize> = called.collect();
        let below = called.iter().filter(|one| has(belongs, **one)).count();
        below > 0 && below * CALLED.1 >= called.len() * CALLED.0
    }

    fn serves(&self, one: usize, belongs: &[bool], least: usize, part: (usize, usize)) -> bool {
        let callers = of(&self.callers, one);
        let above = callers.iter().filter(|one| has(belongs, **one)).count();
        above >= least && above * part.1 >= callers.len() * part.0 && !self.is_common(one)
    }

    /// Whether several functions call it.
    pub(super) fn has_callers(&self, one: usize) -> bool {
        of(&self.callers, one).len() >= LEAST_CALLERS
    }

    fn is_common(&self, one: usize) -> bool {
        of(&self.callers, one).len() > MOST_CALLERS
    }
}

/// What a function's own code proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// It is arithmetic on big numbers.
    BigNumber,
    /// It multiplies with powers of a number.
    Power,
    /// It is something else.
    Other,
    /// Nothing.
    None,
}

/// Functions without a proof of their own that belong to arithmetic on big numbers, in order.
pub(super) fn around_big_numbers(proofs: &[Proof], calls: &Calls) -> Vec<usize> {
    let is_one = |one: &Proof| matches!(one, Proof::BigNumber | Proof::Power);
    let mut belongs: Vec<bool> = proofs.iter().map(is_one).collect();
    // Without helpers, which have nothing but arithmetic callers.
    let mut computes = belongs.clone();
    let mut found = Vec::new();
    let unproved = |belongs: &[bool]| {
        let all = proofs.iter().zip(belongs).enumerate();
        let those = all.filter(|(_, (proof, belongs))| **proof == Proof::None && !**belongs);
        those.map(|(one, _)| one).collect::<Vec<usize>>()
    };
    for _ in 0..ROUNDS {
        let joining = unproved(&belongs).into_iter().filter_map(|one| {
            let is_more = calls.computes(one, &belongs, &computes);
            let serves = || calls.serves(one, &belongs, LEAST_CALLERS, CALLING);
            (is_more || serves()).then_some((one, is_more))
        });
        let joining: Vec<(usize, bool)> = joining.collect();
        if joining.is_empty() {
            break;
        }
        for &(one, is_more) in &joining {
            mark(&mut belongs, one, true);
            mark(&mut computes, one, is_more);
        }
        found.extend(joining.iter().map(|(one, _)| *one));
    }
    let serves_many = |one: &usize| calls.serves(*one, &belongs, MANY_CALLERS, MANY_CALLING);
    found.extend(unproved(&belongs).into_iter().filter(serves_many));
    found.sort_unstable();
    found
}

/// Functions of an exponentiation, in order: what calls a product with a power beside few others is a step of
/// one, and so is arithmetic that steps call and that nothing calls but code with few calls. In OpenSSL:
/// `bn_powerx5`, and the square `bn_sqrx8x_internal` that nearly all of its time goes to.
pub(super) fn around_powers(proofs: &[Proof], calls: &Calls) -> Vec<usize> {
    let is = |one: usize, proof: Proof| proofs.get(one) == Some(&proof);
    let is_small = |one: usize| of(&calls.called, one).len() <= MOST_CALLED;
    let mut found = Vec::new();
    for step in 0..proofs.len() {
        let called = of(&calls.called, step);
        if is(step, Proof::Other)
            || !is_small(step)
            || !called.iter().any(|&one| is(one, Proof::Power))
        {
            continue;
        }
        found.push(step);
        let squares = called.iter().filter(|&&one| {
            is(one, Proof::BigNumber) && of(&calls.callers, one).iter().all(|&one| is_small(one))
        });
        found.extend(squares);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Gives unproved functions the primitive of their callers, if all of these have the same one. In assembly, a curve's prime
/// is loaded once and stays in registers, and products of long numbers are unrolled. Beside a curve whose code multiplies
/// numbers of any length, the rest of its arithmetic is for these too: P-384 in ring. `verdicts`: by function, updated.
/// `may_serve`: whether a function may be a part of its callers' arithmetic.
pub(super) fn within(
    primitives: &[Primitive],
    verdicts: &mut [Option<Primitive>],
    may_serve: impl Fn(usize) -> bool,
    calls: &Calls,
) {
    for _ in 0..ROUNDS {
        let verdict = |one: &usize| verdicts.get(*one).copied().flatten();
        let has_general = |one: &usize| {
            let mut called = of(&calls.called, *one).iter();
            called.any(|one| verdict(one) == Some(Primitive::BigNumber))
        };
        let caller = |one: usize| {
            let callers = of(&calls.callers, one);
            let first = callers.first().and_then(verdict)?;
            let is_alike = callers.iter().all(|one| verdict(one) == Some(first));
            let is_general = callers.iter().all(has_general);
            (primitives.contains(&first) && is_alike).then_some(match is_general {
                true => Primitive::BigNumber,
                false => first,
            })
        };
        let unproved = verdicts.iter().enumerate();
        let unproved = unproved.filter(|(one, verdict)| verdict.is_none() && may_serve(*one));
        let found = unproved.filter_map(|(one, _)| Some((one, caller(one)?)));
        let found: Vec<(usize, Primitive)> = found.collect();
        if found.is_empty() {
            return;
        }
        for (one, primitive) in found {
            if let Some(verdict) = verdicts.get_mut(one) {
                *verdict = Some(primitive);
            }
        }
    }
}

/// Gives functions around loops over numbers of any length that also call code of one curve to that curve: scalars are
/// reduced by such loops. `verdicts`: by function, updated.
pub(super) fn around_curves(verdicts: &mut [Option<Primitive>], calls: &Calls) {
    let proved = verdicts.to_vec();
    for (verdict, called) in verdicts.iter_mut().zip(&calls.called) {
        let called = called.iter().filter_map(|&one| *proved.get(one)?);
        let mut curves: Vec<Primitive> = called.filter(|one| CURVES.contains(one)).collect();
        curves.dedup();
        if *verdict == Some(Primitive::BigNumber)
            && let [curve] = curves.as_slice()
        {
            *verdict = Some(*curve);
        }
    }
}

fn mark(those: &mut [bool], one: usize, value: bool) {
    if let Some(place) = those.get_mut(one) {
        *place = value;
    }
}

fn has(belongs: &[bool], one: usize) -> bool {
    belongs.get(one) == Some(&true)
}

fn of(all: &[Vec<usize>], one: usize) -> &[usize] {
    all.get(one).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests;
