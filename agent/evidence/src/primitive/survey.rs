//! What all functions of an image compute, by their code and by which of them call which.

use super::calls::{Proof, around_big_numbers, called_by};
use super::{MAX_FUNCTION, Primitive, by_code};

/// Larger images are not surveyed: that would take seconds.
const MAX_FUNCTIONS: usize = 60_000;
const MAX_CODE: u64 = 32 << 20;
/// A library for big numbers has so many functions that are proved. The C library has fewer: it reads and
/// writes decimal fractions with them.
const LEAST_PROVED: usize = 16;

/// The functions that are identified, in order. `functions`: where each begins and ends, in order. `memory`
/// as in [`by_code`]. None of an image that is too large.
pub fn identify_all(
    functions: &[(u64, u64)],
    memory: impl Fn(u64, usize) -> Vec<u8>,
) -> Vec<((u64, u64), Primitive)> {
    let size = |(first, end): &(u64, u64)| end.saturating_sub(*first).min(MAX_FUNCTION as u64);
    if functions.len() > MAX_FUNCTIONS || functions.iter().map(size).sum::<u64>() > MAX_CODE {
        return Vec::new();
    }
    let starts: Vec<u64> = functions.iter().map(|(first, _)| *first).collect();
    let looked_at = functions.iter().map(|function| {
        let (first, size) = (function.0, usize::try_from(size(function)).unwrap_or(0));
        let code = memory(first, size);
        (
            by_code(&code, first, &memory),
            called_by(&code, first, &starts),
        )
    });
    let (verdicts, called): (Vec<Option<Primitive>>, Vec<Vec<usize>>) = looked_at.unzip();
    let proofs: Vec<Proof> = verdicts.iter().map(proof).collect();
    let proved = proofs.iter().filter(|one| **one == Proof::BigNumber);
    let around = match proved.count() {
        0..LEAST_PROVED => Vec::new(),
        _ => around_big_numbers(&proofs, &called),
    };
    let identified = functions.iter().zip(verdicts).enumerate();
    let identified = identified.filter_map(|(at, (bounds, verdict))| {
        let around = || around.binary_search(&at).is_ok();
        let primitive = verdict.or_else(|| around().then_some(Primitive::BigNumber));
        Some((*bounds, primitive?))
    });
    identified.collect()
}

const fn proof(verdict: &Option<Primitive>) -> Proof {
    match verdict {
        Some(Primitive::BigNumber) => Proof::BigNumber,
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

    /// So many functions that add big numbers and call one more, at the end.
    fn surveyed(number: usize) -> Vec<((u64, u64), Primitive)> {
        let mut image = Vec::new();
        for at in 0..number {
            let behind = at * SIZE + ADDS.len() + 5;
            let distance = (number * SIZE - behind) as u32;
            image.extend([&ADDS[..], &[0xe8], &distance.to_le_bytes()].concat());
            image.resize((at + 1) * SIZE, 0xc3);
        }
        image.resize((number + 1) * SIZE, 0xc3);
        let size = SIZE as u64;
        let functions: Vec<(u64, u64)> = (0..=number as u64)
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
}
