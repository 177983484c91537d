//! What all functions of an image compute, by their code and by which of them call which.

use std::collections::BTreeSet;

use super::calls::{Calls, Proof, around_big_numbers, around_powers, called_between, called_by};
use super::{MAX_FUNCTION, Primitive, by_code};

/// Larger images are not surveyed: that would take seconds.
const MAX_FUNCTIONS: usize = 60_000;
const MAX_CODE: u64 = 32 << 20;
/// A library for big numbers has so many functions that are proved. The C library has fewer: it reads and
/// writes decimal fractions with them.
const LEAST_PROVED: usize = 16;

/// First address of a function, and that after its last.
type Bounds = (u64, u64);

/// The functions that are identified, in order. `described`: bounds of the functions in the unwind table, in
/// order. `memory` as in [`by_code`]. None of an image that is too large.
pub fn identify_all(
    described: &[Bounds],
    memory: impl Fn(u64, usize) -> Vec<u8>,
) -> Vec<(Bounds, Primitive)> {
    if described.len() > MAX_FUNCTIONS || described.iter().map(size).sum::<u64>() > MAX_CODE {
        return Vec::new();
    }
    let code = |function: &Bounds| memory(function.0, usize::try_from(size(function)).unwrap_or(0));
    let verdict = |function: &Bounds| by_code(&code(function), function.0, &memory);
    let mut functions: Vec<(Bounds, Option<Primitive>)> =
        described.iter().map(|one| (*one, verdict(one))).collect();
    // Of the others, only what is identified: nobody says where they end.
    let others = called_in(described, code).into_iter();
    let others = others.map(|one| (one, verdict(&one)));
    functions.extend(others.filter(|(_, verdict)| verdict.is_some()));
    functions.sort_unstable();
    let starts: Vec<u64> = functions.iter().map(|((first, _), _)| *first).collect();
    let called = functions.iter();
    let called = called.map(|(one, _)| called_by(&code(one), one.0, &starts));
    let calls = Calls::new(called.collect());
    let proofs: Vec<Proof> = functions
        .iter()
        .map(|(_, verdict)| proof(verdict))
        .collect();
    let powers = around_powers(&proofs, &calls);
    let proved = proofs.iter().filter(|one| **one == Proof::BigNumber);
    let around = match proved.count() {
        0..LEAST_PROVED => Vec::new(),
        _ => around_big_numbers(&proofs, &calls),
    };
    let identified = functions.into_iter().enumerate();
    let identified = identified.filter_map(|(at, (bounds, verdict))| {
        let has = |those: &[usize]| those.binary_search(&at).is_ok();
        let primitive = match (has(&powers), has(&around)) {
            (true, _) => Some(Primitive::RsaDh),
            (false, true) => Some(Primitive::BigNumber),
            (false, false) => verdict,
        };
        Some((bounds, primitive?))
    });
    identified.collect()
}

/// As far as it is looked at.
fn size((first, end): &Bounds) -> u64 {
    end.saturating_sub(*first).min(MAX_FUNCTION as u64)
}

/// The functions that these call, and that lie between them: up to the next one.
fn called_in(described: &[Bounds], code: impl Fn(&Bounds) -> Vec<u8>) -> Vec<Bounds> {
    let mut called = BTreeSet::new();
    for function in described {
        called.extend(called_between(&code(function), function.0, described));
    }
    let ends = |first: u64| {
        let after = described.partition_point(|(other, _)| *other <= first);
        let described = described.get(after).map(|(other, _)| *other);
        let called = called.range(first.saturating_add(1)..).next().copied();
        let longest = first.saturating_add(MAX_FUNCTION as u64);
        let next = described.into_iter().chain(called).min();
        next.map_or(longest, |next| next.min(longest))
    };
    let called = called.iter().take(MAX_FUNCTIONS);
    called.map(|&first| (first, ends(first))).collect()
}

const fn proof(verdict: &Option<Primitive>) -> Proof {
    match verdict {
        Some(Primitive::BigNumber) => Proof::BigNumber,
        Some(Primitive::RsaDh) => Proof::Power,
        Some(_) => Proof::Other,
        None => Proof::None,
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    #![allow(
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        reason = "tests"
    )]

    use super::*;

    /// adc (%rcx,%rdx,8),%rax; mov %rax,(%rdi,%rdx,8); lea 1(%rdx),%rdx; dec %r8; jne to its beginning
    const ADDS: [u8; 17] = [
        0x48, 0x13, 0x04, 0xd1, 0x48, 0x89, 0x04, 0xd7, 0x48, 0x8d, 0x52, 0x01, 0x49, 0xff, 0xc8,
        0x75, 0xef,
    ];
    const SIZE: usize = 32;

    /// So many functions that add big numbers and call one more, at the end, which is described as well.
    fn surveyed(number: usize) -> Vec<(Bounds, Primitive)> {
        surveyed_with(number, &[0xc3], true)
    }

    /// With this code in the last one.
    fn surveyed_with(number: usize, last: &[u8], described: bool) -> Vec<(Bounds, Primitive)> {
        let mut image = Vec::new();
        for at in 0..number {
            let behind = at * SIZE + ADDS.len() + 5;
            let distance = (number * SIZE - behind) as u32;
            image.extend([&ADDS[..], &[0xe8], &distance.to_le_bytes()].concat());
            image.resize((at + 1) * SIZE, 0xc3);
        }
        image.extend(last);
        image.resize((number + 1) * SIZE, 0xc3);
        let size = SIZE as u64;
        let functions: Vec<Bounds> = (0..number as u64 + u64::from(described))
            .map(|at| (at * size, (at + 1) * size))
            .collect();
        identify_all(&functions, |at, size| {
            let rest = image.get(at as usize..).unwrap_or_default();
            rest[..size.min(rest.len())].to_vec()
        })
    }

    #[test]
    fn what_a_library_for_big_numbers_calls_belongs_to_it() {
        let found = surveyed(LEAST_PROVED);
        assert_eq!(found.len(), LEAST_PROVED + 1, "{found:?}");
        assert!(found.iter().all(|(_, one)| *one == Primitive::BigNumber));
        assert_eq!(surveyed(LEAST_PROVED - 1).len(), LEAST_PROVED - 1);
    }
    #[test]
    fn what_nobody_describes_is_found_by_calls_and_counts_if_it_is_identified() {
        let found = surveyed_with(LEAST_PROVED, &ADDS, false);
        assert_eq!(found.len(), LEAST_PROVED + 1, "{found:?}");
        let start = (LEAST_PROVED * SIZE) as u64;
        let end = start + MAX_FUNCTION as u64;
        assert_eq!(found.last(), Some(&((start, end), Primitive::BigNumber)));
        assert_eq!(
            surveyed_with(LEAST_PROVED, &[0xc3], false).len(),
            LEAST_PROVED
        );
    }
}
