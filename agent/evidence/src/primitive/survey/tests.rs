#![allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

use super::*;

/// adc (%rcx,%rdx,8),%rax; mov %rax,(%rdi,%rdx,8); lea 1(%rdx),%rdx; dec %r8; jne to its beginning
const ADDS: [u8; 17] = [
    0x48, 0x13, 0x04, 0xd1, 0x48, 0x89, 0x04, 0xd7, 0x48, 0x8d, 0x52, 0x01, 0x49, 0xff, 0xc8, 0x75,
    0xef,
];
const RET: u8 = 0xc3;
const SIZE: usize = 48;

/// and $0xfffffff,%eax and and $0x1fffffff,%eax, four times each: limbs of P-256.
fn curve() -> Vec<u8> {
    let cut = |high| [0x25, 0xff, 0xff, 0xff, high];
    [cut(0x0f).repeat(4), cut(0x1f).repeat(4)].concat()
}

/// So many functions that add big numbers and call one more, at the end, which is described as well, and
/// one for a curve.
fn surveyed(number: usize) -> Vec<(Bounds, Primitive)> {
    surveyed_with(&curve(), number, &[RET], true)
}

/// With this code in the first and the last one.
fn surveyed_with(
    first: &[u8],
    number: usize,
    last: &[u8],
    described: bool,
) -> Vec<(Bounds, Primitive)> {
    let mut image = first.to_vec();
    image.resize(SIZE, RET);
    for at in 1..=number {
        let behind = at * SIZE + ADDS.len() + 5;
        let distance = ((number + 1) * SIZE - behind) as u32;
        image.extend([&ADDS[..], &[0xe8], &distance.to_le_bytes()].concat());
        image.resize((at + 1) * SIZE, RET);
    }
    image.extend(last);
    image.resize((number + 2) * SIZE, RET);
    let size = SIZE as u64;
    let functions: Vec<Bounds> = (0..=number as u64 + u64::from(described))
        .map(|at| (at * size, (at + 1) * size))
        .collect();
    identify(Machine::X86_64, &functions, &image)
}

fn identify(machine: Machine, functions: &[Bounds], image: &[u8]) -> Vec<(Bounds, Primitive)> {
    identify_all(machine, functions, |at, size| {
        let rest = image.get(at as usize..).unwrap_or_default();
        rest[..size.min(rest.len())].to_vec()
    })
}

#[test]
fn what_a_library_for_big_numbers_calls_belongs_to_it() {
    let found = surveyed(LEAST_PROVED);
    assert_eq!(found.len(), LEAST_PROVED + 2, "{found:?}");
    let (first, others) = found.split_at(1);
    assert_eq!(first[0].1, Primitive::P256);
    assert!(others.iter().all(|(_, one)| *one == Primitive::BigNumber));
    assert_eq!(surveyed(LEAST_PROVED - 1).len(), LEAST_PROVED);
    // Without other cryptography it is no library for that.
    let numbers = surveyed_with(&[RET], LEAST_PROVED, &[RET], true);
    assert_eq!(numbers.len(), LEAST_PROVED);
}

#[test]
fn what_nobody_describes_is_found_by_calls_and_counts_if_it_is_identified() {
    let last = [&ADDS[..], &[RET]].concat();
    let with = |last: &[u8]| surveyed_with(&curve(), LEAST_PROVED, last, false);
    let found = with(&last);
    assert_eq!(found.len(), LEAST_PROVED + 2, "{found:?}");
    let start = ((LEAST_PROVED + 1) * SIZE) as u64;
    let end = start + last.len() as u64;
    assert_eq!(found.last(), Some(&((start, end), Primitive::BigNumber)));
    assert_eq!(with(&[RET]).len(), LEAST_PROVED + 1);
}

/// As `felem_reduce_carry` is in NSS.
#[test]
fn what_calls_nothing_and_serves_one_curve_belongs_to_it() {
    // Functions for the curve jump to the last one, which has this code.
    let last = |callers: usize, code: &[u8]| {
        let mut image = Vec::new();
        for at in 0..callers {
            image.resize(at * SIZE, RET);
            image.extend(curve());
            let distance = (callers * SIZE - image.len() - 5) as u32;
            image.extend([&[0xe9], &distance.to_le_bytes()[..]].concat());
        }
        image.resize(callers * SIZE, RET);
        image.extend(code);
        image.resize((callers + 1) * SIZE, RET);
        let starts = (0..=callers as u64).map(|at| at * SIZE as u64);
        let functions: Vec<Bounds> = starts.map(|at| (at, at + SIZE as u64)).collect();
        let found = identify(Machine::X86_64, &functions, &image);
        found.get(callers).map(|(_, primitive)| *primitive)
    };
    assert_eq!(last(2, &[RET]), Some(Primitive::P256));
    assert_eq!(last(1, &[RET]), None);
    // call *%rax
    assert_eq!(last(2, &[0xff, 0xd0, RET]), None);
}

/// As OpenSSL's assembly for P-256 is on AArch64: nothing describes it, and what multiplies has the prime in registers.
#[test]
fn assembly_that_nobody_describes_is_found_from_call_to_call() {
    const RETURN: u32 = 0xd65f_03c0;
    let prime = [u64::MAX, 0xffff_ffff, 0, 0xffff_ffff_0000_0001];
    // A function of C calls the second, and jumps to the last one.
    let mut words = vec![0x9400_0003, 0x1400_0009, RETURN];
    // ldr x6, the prime; bl to the third; ret
    words.extend([0x5800_0206, 0x9400_0002, RETURN]);
    // adcs x4, x4, x3, three times; ret; nop
    words.extend([0xba03_0084, 0xba03_0084, 0xba03_0084, RETURN]);
    // ldr x6, the prime; ret: behind the third
    words.extend([0x5800_0106, RETURN]);
    let last = words.len() as u64 * 4;
    words[1] = 0x1400_0000 | (words.len() as u32 - 1);
    // ldr x6, the prime; ret
    words.extend([0x5800_00c6, RETURN, 0, 0, 0, 0]);
    let mut image: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    image.extend(prime.iter().flat_map(|word| word.to_le_bytes()));
    let found = identify(Machine::Aarch64, &[(0, 12)], &image);
    let bounds = [(12, 24), (24, 40), (40, 48), (last, last + 8)];
    assert_eq!(found, bounds.map(|one| (one, Primitive::P256)));
}
