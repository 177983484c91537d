//! Verdicts on functions of a few instructions; `agent/examples/functions.rs` compares them with names
//! in whole programs.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

mod aarch64;
mod fields;

use proptest::prelude::*;

use super::*;

const ADDRESS: u64 = 0x1000;
/// Where the constants are.
const DATA: u64 = 0x2000;
const RET: &[u8] = &[0xc3];
/// mul %r9; adc %rdx,%r8
const MUL: &[u8] = &[0x49, 0xf7, 0xe1, 0x49, 0x11, 0xd0];

fn verdict(code: &[u8], data: &[u64]) -> Option<Primitive> {
    verdict_on(Machine::X86_64, code, data)
}

fn verdict_on(machine: Machine, code: &[u8], data: &[u64]) -> Option<Primitive> {
    let data: Vec<u8> = data.iter().flat_map(|word| word.to_le_bytes()).collect();
    // Memory before the data is zero.
    let memory = move |address: u64, size: usize| -> Vec<u8> {
        (0..size as u64)
            .map(|at| address.wrapping_add(at))
            .map(|at| {
                at.checked_sub(DATA)
                    .map_or(0, |at| data.get(at as usize).copied().unwrap_or(0))
            })
            .collect()
    };
    by_code(machine, code, ADDRESS, memory)
}

/// mov DATA + offset(%rip),%r14; ret
fn refers_to(offset: u64) -> Vec<u8> {
    let relative = u32::try_from(DATA + offset - ADDRESS - 7).unwrap();
    [&[0x4c, 0x8b, 0x35], &relative.to_le_bytes()[..], RET].concat()
}

const PRIME_256: [u64; 4] = [u64::MAX, 0xffff_ffff, 0, 0xffff_ffff_0000_0001];

#[test]
fn a_whole_prime_in_memory_is_proof() {
    assert_eq!(verdict(&refers_to(0), &PRIME_256), Some(Primitive::P256));
    assert_eq!(verdict(&refers_to(24), &PRIME_256), Some(Primitive::P256));
    let later = [[7; 4], PRIME_256].concat();
    assert_eq!(verdict(&refers_to(40), &later), Some(Primitive::P256));
}

#[test]
fn a_part_of_a_prime_is_none() {
    let mut other = PRIME_256;
    other[1] = 0xffff_fffe;
    assert_eq!(verdict(&refers_to(0), &other), None);
    // Beside the prime, not in it.
    assert_eq!(
        verdict(&refers_to(32), &[&PRIME_256[..], &[1, 0]].concat()),
        None
    );
    // mov $0xffffffff00000001,%rax: it is in a constant of P-384 too.
    let word = [0x48, 0xb8, 0x01, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(verdict(&[&word[..], RET].concat(), &[]), None);
}

#[test]
fn tables_of_several_curves_are_none() {
    let p384 = [
        0xffff_ffff,
        0xffff_ffff_0000_0000,
        0xffff_ffff_ffff_fffe,
        u64::MAX,
        u64::MAX,
        u64::MAX,
    ];
    let data = [&PRIME_256[..], &p384].concat();
    let mut both = refers_to(0);
    both.pop();
    // The second reference is 7 bytes later.
    both.extend(refers_to(32 - 7));
    assert_eq!(verdict(&refers_to(32), &data), Some(Primitive::P384));
    assert_eq!(verdict(&both, &data), None);
}

#[test]
fn round_constants_are_hashes() {
    let keccak = [
        1,
        0x8082,
        0x8000_0000_0000_808a,
        0x8000_0000_8000_8000,
        0x808b,
        0x8000_0001,
    ];
    assert_eq!(verdict(&refers_to(40), &keccak), Some(Primitive::Sha3));
    let first = [0x7137_4491_428a_2f98, 0xe9b5_dba5_b5c0_fbcf];
    let second = [0x59f1_11f1_3956_c25b, 0xab1c_5ed5_923f_82a4];
    let plain = [first, second].concat();
    assert_eq!(verdict(&refers_to(252), &plain), Some(Primitive::Sha));
    assert_eq!(verdict(&refers_to(256), &plain), None);
    let doubled = [first, first, second].concat();
    assert_eq!(verdict(&refers_to(508), &doubled), Some(Primitive::Sha));
    assert_eq!(verdict(&refers_to(512), &doubled), None);
    let lone_row = [first, [7, 7]].concat();
    assert_eq!(verdict(&refers_to(12), &lone_row), Some(Primitive::Sha));
    assert_eq!(verdict(&refers_to(16), &lone_row), None);
}

/// imul $19,%rbp,%rdi; shrd $51,%rdx,%rax
const BY_19: &[u8] = &[0x48, 0x6b, 0xfd, 0x13, 0x48, 0x0f, 0xac, 0xd0, 51];

#[test]
fn wide_products_that_wrap_around_at_19_or_38_are_curve25519() {
    let products = MUL.repeat(15);
    let field = [&products[..], BY_19, BY_19, RET].concat();
    assert_eq!(verdict(&field, &[]), Some(Primitive::Curve25519));
    let in_other_limbs = [&products[..], &BY_19[..4], &BY_19[..4], RET].concat();
    assert_eq!(verdict(&in_other_limbs, &[]), None);
    let once = [&products[..], BY_19, RET].concat();
    assert_eq!(verdict(&once, &[]), None);
    let few = [&MUL.repeat(9), BY_19, BY_19, RET].concat();
    assert_eq!(verdict(&few, &[]), None);
    // Without carries it is division by constants, and 19 or 38 anything.
    let divides = [&MUL[..3].repeat(15)[..], BY_19, BY_19, RET].concat();
    assert_eq!(verdict(&divides, &[]), None);
    // mov $38,%eax
    let number = &[0xb8, 0x26, 0, 0, 0];
    let by_38 = [&products[..], number, MUL, RET].concat();
    assert_eq!(verdict(&by_38, &[]), Some(Primitive::Curve25519));
    // Nothing is multiplied by it.
    let has_38 = [&products[..], number, RET].concat();
    assert_eq!(verdict(&has_38, &[]), None);
    // mov $38,%edx; mov $38,%edi; mulx %r9,%rax,%rcx, which multiplies by %rdx
    let mulx = &[0xc4, 0xc2, 0xfb, 0xf6, 0xc9];
    let to = |opcode| [&products[..], &[opcode, 0x26, 0, 0, 0], mulx, RET].concat();
    assert_eq!(verdict(&to(0xba), &[]), Some(Primitive::Curve25519));
    assert_eq!(verdict(&to(0xbf), &[]), None);
}

#[test]
fn nineteen_times_is_also_two_sums() {
    let products = MUL.repeat(15);
    let nine = [0x48, 0x8d, 0x04, 0xff]; // lea (%rdi,%rdi,8),%rax
    let carry = &BY_19[4..];
    let of = |second: u8| [&nine[..], &[0x4c, 0x8d, 0x14, second], carry].concat();
    // lea (%rdi,%rax,2),%r10; lea (%rsi,%rax,2),%r10
    let (nineteen, other) = (of(0x47), of(0x46));
    let field = [&products[..], &nineteen.repeat(2), RET].concat();
    assert_eq!(verdict(&field, &[]), Some(Primitive::Curve25519));
    let once = [&products[..], &nineteen, &other, RET].concat();
    assert_eq!(verdict(&once, &[]), None);
}

#[test]
fn limbs_of_28_and_29_bits_are_p256() {
    // and $0xfffffff,%eax; and $0x1fffffff,%eax
    let (cut_28, cut_29) = (
        [0x25, 0xff, 0xff, 0xff, 0x0f],
        [0x25, 0xff, 0xff, 0xff, 0x1f],
    );
    let cuts = [cut_28.repeat(4), cut_29.repeat(4), RET.to_vec()].concat();
    assert_eq!(verdict(&cuts, &[]), Some(Primitive::P256));
    // Keys of DES have halves of 28 bits.
    assert_eq!(verdict(&[&cut_28.repeat(8), RET].concat(), &[]), None);
    // imul %rbx,%rax; call DATA
    let products = |number: usize| {
        let distance = DATA - ADDRESS - 4 * number as u64 - 5;
        let call = [&[0xe8][..], &(distance as u32).to_le_bytes(), RET].concat();
        [[0x48, 0x0f, 0xaf, 0xc3].repeat(number), call].concat()
    };
    let mut called = cuts;
    called.resize(called.len().next_multiple_of(8), 0);
    let called = called.as_chunks::<8>().0.iter();
    let called: Vec<u64> = called.map(|word| u64::from_le_bytes(*word)).collect();
    assert_eq!(verdict(&products(45), &called), Some(Primitive::P256));
    assert_eq!(verdict(&products(44), &called), None);
    assert_eq!(verdict(&products(45), &[]), None);
}

#[test]
fn a_reduction_in_another_function_counts() {
    // jmp DATA, where mov $38,%eax and four products are.
    let distance = u32::try_from(DATA - ADDRESS - 60 - 5)
        .unwrap()
        .to_le_bytes();
    let jumps = [&MUL.repeat(10), &[0xe9][..], &distance].concat();
    let tail = [&[0xb8, 0x26, 0, 0, 0], &MUL.repeat(4)[..], RET, &[0; 6]].concat();
    let tail: Vec<u64> = tail
        .as_chunks::<8>()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .collect();
    assert_eq!(verdict(&jumps, &tail), Some(Primitive::Curve25519));
    assert_eq!(verdict(&jumps, &[0; 4]), None);
}

/// The inner loop of OpenSSL's bn_mul_mont: words of two numbers, at an index that moves on.
const LOOP: &[u8] = &[
    0x4a, 0x8b, 0x04, 0xfe, // mov (%rsi,%r15,8),%rax
    0x48, 0xf7, 0xe3, // mul %rbx
    0x4a, 0x8b, 0x04, 0xf9, // mov (%rcx,%r15,8),%rax
    0x4d, 0x8d, 0x7f, 0x01, // lea 1(%r15),%r15
    0x48, 0xf7, 0xe5, // mul %rbp
    0x4d, 0x39, 0xcf, // cmp %r9,%r15
    0x75, 0xe9, // jne to its beginning
];

#[test]
fn loops_over_the_words_of_numbers_are_big_number_arithmetic() {
    assert_eq!(
        verdict(&[LOOP, RET].concat(), &[]),
        Some(Primitive::BigNumber)
    );
}

#[test]
fn products_with_an_entry_of_a_table_that_is_looked_up_in_secret_are_exponentiation() {
    // pcmpeqd %xmm1,%xmm0; pand %xmm1,%xmm0
    let (compare, mask) = ([0x66, 0x0f, 0x76, 0xc1], [0x66, 0x0f, 0xdb, 0xc1]);
    let code = |compares, masks, after: &[u8]| {
        [
            &compare.repeat(compares)[..],
            &mask.repeat(masks),
            after,
            RET,
        ]
        .concat()
    };
    let (rsa, big) = (Some(Primitive::RsaDh), Some(Primitive::BigNumber));
    assert_eq!(verdict(&code(8, 16, LOOP), &[]), rsa);
    assert_eq!(verdict(&code(7, 16, LOOP), &[]), big);
    assert_eq!(verdict(&code(8, 15, LOOP), &[]), big);
    // The table of a curve, beside its field's unrolled products.
    assert_eq!(verdict(&code(8, 16, &MUL.repeat(15)), &[]), None);
}

#[test]
fn lanes_of_29_bits_times_a_number_too_long_for_a_curve_are_exponentiation() {
    // vpbroadcastq %xmm11,%ymm11; and $0x1fffffff,%eax
    let (broadcast, cut) = (
        [0xc4, 0x42, 0x7d, 0x59, 0xdb],
        [0x25, 0xff, 0xff, 0xff, 0x1f],
    );
    // vpmuludq -0x60(%rsi),%ymm10,%ymm0; vpmuludq OFFSET(%rsi),%ymm10,%ymm0
    let first = [0xc5, 0xad, 0xf4, 0x46, 0xa0];
    let last = |offset| [0xc5, 0xad, 0xf4, 0x86, offset, 0, 0, 0];
    let code = |offset| [&broadcast[..], &cut, &first, &last(offset), RET].concat();
    assert_eq!(verdict(&code(0x60), &[]), Some(Primitive::RsaDh));
    assert_eq!(verdict(&code(0x40), &[]), None);
    let in_other_limbs = [&broadcast[..], &first, &last(0x60), RET].concat();
    assert_eq!(verdict(&in_other_limbs, &[]), None);
}

#[test]
fn loops_over_numbers_of_fixed_length_are_not() {
    // The same without an index that moves on: nop in place of lea.
    let mut fixed = LOOP.to_vec();
    fixed[11..15].copy_from_slice(&[0x0f, 0x1f, 0x40, 0x00]);
    assert_eq!(verdict(&[&fixed[..], RET].concat(), &[]), None);
    // Products of registers beside a pointer that moves on through a table.
    let table = [&LOOP[..7], &MUL.repeat(3), &LOOP[11..]].concat();
    assert_eq!(verdict(&[&table[..], RET].concat(), &[]), None);
}

/// OpenSSL's bn_add_words, without its beginning and end.
const ADDS: [&[u8]; 6] = [
    &[0x48, 0x8b, 0x04, 0xd6], // mov (%rsi,%rdx,8),%rax
    &[0x48, 0x13, 0x04, 0xd1], // adc (%rcx,%rdx,8),%rax
    &[0x48, 0x89, 0x04, 0xd7], // mov %rax,(%rdi,%rdx,8)
    &[0x48, 0x8d, 0x52, 0x01], // lea 1(%rdx),%rdx
    &[0x49, 0xff, 0xc8],       // dec %r8
    &[0x75, 0xeb],             // jne to its beginning
];

#[test]
fn loops_that_add_words_with_the_last_carry_are_big_number_arithmetic() {
    let code = [&ADDS.concat()[..], RET].concat();
    assert_eq!(verdict(&code, &[]), Some(Primitive::BigNumber));
    // add in place of adc; a compare before it; a sum that is not stored, but another word is loaded.
    let changed = [
        (1, &[0x48, 0x03, 0x04, 0xd1][..]),
        (0, &[0x48, 0x3b, 0x04, 0xd6][..]),
        (2, &[0x48, 0x8b, 0x04, 0xd7][..]),
    ];
    for (at, instead) in changed {
        let mut other = ADDS;
        other[at] = instead;
        let code = [&other.concat()[..], RET].concat();
        assert_eq!(verdict(&code, &[]), None, "{at}");
    }
}

/// As in NSS's `s_mpv_mul_d`: it ends before its last jump.
const MULTIPLIES: [&[u8]; 11] = [
    &[0x49, 0x83, 0xf8, 0x08], // cmp $8,%r8
    &[0x72, 0x1e],             // jb behind the last jump
    &[0x48, 0x8b, 0x06],       // mov (%rsi),%rax
    &[0x48, 0xf7, 0xe1],       // mul %rcx
    &[0x48, 0x89, 0x07],       // mov %rax,(%rdi)
    &[0x48, 0x8b, 0x46, 0x08], // mov 8(%rsi),%rax
    &[0x48, 0xf7, 0xe1],       // mul %rcx
    &[0x48, 0x89, 0x47, 0x08], // mov %rax,8(%rdi)
    &[0x48, 0x83, 0xc6, 0x10], // add $16,%rsi
    &[0x48, 0x83, 0xc7, 0x10], // add $16,%rdi
    &[0xeb, 0xdc],             // jmp to the beginning
];

#[test]
fn a_loop_may_end_before_its_last_jump() {
    let code = [&MULTIPLIES.concat()[..], RET].concat();
    assert_eq!(verdict(&code, &[]), Some(Primitive::BigNumber));
    // Without an end it is no loop; nop in place of jb.
    let mut endless = MULTIPLIES;
    endless[1] = &[0x66, 0x90];
    let code = [&endless.concat()[..], RET].concat();
    assert_eq!(verdict(&code, &[]), None);
}

/// NSS's `s_mp_sub` in part, as gcc compiles it: the borrow goes to a register.
const SUBTRACTS: [&[u8]; 9] = [
    &[0x48, 0x8b, 0x06],       // mov (%rsi),%rax
    &[0x48, 0x29, 0xd0],       // sub %rdx,%rax
    &[0x48, 0x2b, 0x01],       // sub (%rcx),%rax
    &[0x0f, 0x92, 0xc2],       // setb %dl
    &[0x48, 0x89, 0x06],       // mov %rax,(%rsi)
    &[0x48, 0x83, 0xc6, 0x08], // add $8,%rsi
    &[0x48, 0x83, 0xc1, 0x08], // add $8,%rcx
    &[0x4c, 0x39, 0xc9],       // cmp %r9,%rcx
    &[0x72, 0xe4],             // jb to the beginning
];

#[test]
fn loops_that_keep_the_borrow_of_words_are_big_number_arithmetic() {
    let code = [&SUBTRACTS.concat()[..], RET].concat();
    assert_eq!(verdict(&code, &[]), Some(Primitive::BigNumber));
    // cmp in place of sub; sub of a word that stays the same; no borrow; the difference is not stored; the borrow is
    // only asked for (test %rdx,%rdx), as where a difference is cut at zero; it takes the difference's place (setb %al).
    let changed = [
        (2, &[0x48, 0x3b, 0x01][..]),
        (2, &[0x48, 0x2b, 0x03][..]),
        (3, &[0x0f, 0x1f, 0x00][..]),
        (4, &[0x48, 0x89, 0x16][..]),
        (7, &[0x48, 0x85, 0xd2][..]),
        (3, &[0x0f, 0x92, 0xc0][..]),
    ];
    for (at, instead) in changed {
        let mut other = SUBTRACTS;
        other[at] = instead;
        let code = [&other.concat()[..], RET].concat();
        assert_eq!(verdict(&code, &[]), None, "{at}: {instead:x?}");
    }
}

#[test]
fn the_least_number_is_no_constant() {
    // mov $0x8000000000000000,%rax
    let least = [0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0x80];
    assert_eq!(verdict(&least, &[]), None);
}

proptest! {
    #[test]
    fn any_bytes_have_an_answer(
        code in prop::collection::vec(any::<u8>(), 0..4000),
        data in prop::collection::vec(any::<u64>(), 0..40),
        address in any::<u64>(),
    ) {
        let first = verdict(&code, &data);
        prop_assert_eq!(first, verdict(&code, &data));
        by_code(Machine::X86_64, &code, address, |_, _| Vec::new());
    }
}
