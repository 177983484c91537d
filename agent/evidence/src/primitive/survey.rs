//! What all functions of an image compute, by their code and by which of them call which.

use std::collections::{BTreeMap, BTreeSet};

use super::calls::{
    CURVES, Calls, Proof, around_big_numbers, around_curves, around_powers, called_between,
    called_by, is_between, within,
};
use super::code::{self, Image, Looked};
use super::{MAX_FUNCTION, Primitive};
use crate::fingerprint::Machine;

/// Larger images are not surveyed: that would take seconds.
const MAX_FUNCTIONS: usize = 60_000;
const MAX_CODE: u64 = 32 << 20;
/// Proved functions of a library for big numbers, at least; such an image has other proved cryptography as well. The C
/// library (decimal conversion) has 13, compilers have more and no cryptography.
const LEAST_PROVED: usize = 16;

/// First address of a function, and the address after its last.
type Bounds = (u64, u64);

/// The functions that are identified, in order. `described`: bounds of the functions in the unwind table, in
/// order. `memory` as in [`by_code`](super::by_code). None of an image that is too large.
pub fn identify_all(
    machine: Machine,
    described: &[Bounds],
    memory: impl Fn(u64, usize) -> Vec<u8>,
) -> Vec<(Bounds, Primitive)> {
    if described.len() > MAX_FUNCTIONS || described.iter().map(size).sum::<u64>() > MAX_CODE {
        return Vec::new();
    }
    let code = |function: &Bounds| memory(function.0, usize::try_from(size(function)).unwrap_or(0));
    let others = called_in(machine, described, code);
    let mut functions: Vec<Bounds> = described.iter().chain(&others).copied().collect();
    functions.sort_unstable();
    let starts: Vec<u64> = functions.iter().map(|(first, _)| *first).collect();
    let image = Image::new(machine, &memory);
    let looked = functions.iter().map(|one| {
        let code = code(one);
        let called = called_by(machine, &code, one.0, &starts);
        (image.look(&code, one.0), called)
    });
    let (looked, called): (Vec<_>, Vec<_>) = looked.unzip();
    let mut verdicts: Vec<_> = looked.iter().map(|one| one.primitive).collect();
    let calls = Calls::new(called);
    let looks = |one: usize, is: &dyn Fn(&Looked) -> bool| looked.get(one).is_some_and(is);
    let is_arithmetic = |one| looks(one, &|one| one.is_arithmetic);
    let is_helper = |one| looks(one, &|one| one.is_leaf) && calls.has_callers(one);
    let may_serve = |one| is_arithmetic(one) || is_helper(one);
    within(&CURVES, &mut verdicts, may_serve, &calls);
    around_curves(&mut verdicts, &calls);
    // The bounds of undescribed functions are a guess: their calls identify nothing.
    let is_described = |one: &Bounds| described.binary_search(one).is_ok();
    let proofs = functions.iter().zip(&verdicts);
    let proofs = proofs.map(|(bounds, verdict)| proof(*verdict, is_described(bounds)));
    let proofs: Vec<Proof> = proofs.collect();
    let is_cryptography =
        |one: &Option<Primitive>| !matches!(one, None | Some(Primitive::BigNumber));
    let around = match verdicts.iter().any(is_cryptography) {
        true => around(&proofs, &calls),
        false => Vec::new(),
    };
    for one in around {
        set(&mut verdicts, one, Primitive::BigNumber);
    }
    let numbers = [Primitive::BigNumber];
    within(&numbers, &mut verdicts, is_arithmetic, &calls);
    for one in around_powers(&proofs, &calls) {
        set(&mut verdicts, one, Primitive::RsaDh);
    }
    let identified = functions.into_iter().zip(verdicts);
    let identified = identified.filter_map(|(bounds, verdict)| Some((bounds, verdict?)));
    identified.collect()
}

fn around(proofs: &[Proof], calls: &Calls) -> Vec<usize> {
    let proved = proofs.iter().filter(|one| **one == Proof::BigNumber);
    match proved.count() {
        0..LEAST_PROVED => Vec::new(),
        _ => around_big_numbers(proofs, calls),
    }
}

fn set(verdicts: &mut [Option<Primitive>], at: usize, primitive: Primitive) {
    if let Some(verdict) = verdicts.get_mut(at) {
        *verdict = Some(primitive);
    }
}

/// In bytes, as far as it is read.
fn size((first, end): &Bounds) -> u64 {
    end.saturating_sub(*first).min(MAX_FUNCTION as u64)
}

/// Undescribed functions between the described ones: callees, functions behind a found one, and their callees in turn.
fn called_in(
    machine: Machine,
    described: &[Bounds],
    code: impl Fn(&Bounds) -> Vec<u8>,
) -> Vec<Bounds> {
    let mut found = BTreeSet::new();
    let mut left = MAX_CODE;
    let mut newest = described.to_vec();
    let mut ends = BTreeMap::new();
    let mut bounds = |first: u64, found: &BTreeSet<u64>| {
        let longest = reach(first, described, found);
        let end = ends.entry(longest);
        let end = end.or_insert_with(|| code::end(machine, &code(&longest), first));
        (first, *end)
    };
    loop {
        let targets = newest.iter().flat_map(|function| {
            let code = code(function);
            let called = called_between(machine, &code, function.0, described);
            called.collect::<Vec<u64>>()
        });
        let mut new: BTreeSet<u64> = targets.collect();
        if !found.is_empty() {
            let behind = newest.iter().map(|(_, end)| *end);
            new.extend(behind.filter(|end| is_between(*end, described)));
        }
        new.retain(|first| !found.contains(first));
        found.extend(&new);
        newest = new.into_iter().map(|one| bounds(one, &found)).collect();
        newest.retain(|(first, end)| first < end);
        let size: u64 = newest.iter().map(size).sum();
        match left.checked_sub(size) {
            Some(rest) if size > 0 => left = rest,
            _ => break,
        }
    }
    let all = found.iter().map(|one| bounds(*one, &found));
    all.filter(|(first, end)| first < end).collect()
}

/// Longest possible bounds of an undescribed function: up to the next known one.
fn reach(first: u64, described: &[Bounds], called: &BTreeSet<u64>) -> Bounds {
    let after = described.partition_point(|(other, _)| *other <= first);
    let described = described.get(after).map(|(other, _)| *other);
    let called = called.range(first.saturating_add(1)..).next().copied();
    let longest = first.saturating_add(MAX_FUNCTION as u64);
    let next = described.into_iter().chain(called).min();
    (first, next.map_or(longest, |next| next.min(longest)))
}

const fn proof(verdict: Option<Primitive>, is_described: bool) -> Proof {
    match verdict {
        Some(Primitive::BigNumber) => Proof::BigNumber,
        Some(Primitive::RsaDh) => Proof::Power,
        None if is_described => Proof::None,
        Some(_) | None => Proof::Other,
    }
}

#[cfg(test)]
mod tests;
