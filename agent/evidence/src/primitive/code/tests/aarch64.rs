//! The same rules on AArch64.

use super::*;

const NOP: u32 = 0xd503_201f;
const RET: u32 = 0xd65f_03c0;
/// mul x0, x1, x2; umulh x3, x1, x2; adcs x4, x4, x3
const MUL: [u32; 3] = [0x9b02_7c20, 0x9bc2_7c23, 0xba03_0084];

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn verdict(words: &[u32], data: &[u64]) -> Option<Primitive> {
    verdict_on(Machine::Aarch64, &bytes(words), data)
}

/// adrp x5, DATA
const PAGE: u32 = 0xb000_0005;
/// add x5, x5, #0
const ADD: u32 = 0x9100_00a5;

/// ldr x6, [x5, #offset]
const fn load(offset: u32) -> u32 {
    0xf940_00a6 | (offset / 8) << 10
}

#[test]
fn a_whole_prime_is_found_however_code_addresses_it() {
    let ways: [&[u32]; 6] = [
        &[PAGE, load(24), RET],
        &[PAGE, ADD, load(24), RET],
        &[PAGE, ADD, RET],
        // adr x5, DATA; ldr x6, DATA
        &[0x1000_8005, RET],
        &[0x5800_8006, RET],
        // ldr x6, [x5], #8
        &[PAGE, ADD, 0xf840_84a6, RET],
    ];
    for code in ways {
        assert_eq!(
            verdict(code, &PRIME_256),
            Some(Primitive::P256),
            "{code:x?}"
        );
    }
    let mut other = PRIME_256;
    other[1] = 0xffff_fffe;
    assert_eq!(verdict(&[PAGE, load(24), RET], &other), None);
    // Another register has the address; a call changes it.
    assert_eq!(verdict(&[PAGE + 1, load(24), RET], &PRIME_256), None);
    assert_eq!(
        verdict(&[PAGE, 0x9400_0000, load(24), RET], &PRIME_256),
        None
    );
}

#[test]
fn an_address_that_leads_to_other_objects_is_no_reference() {
    let data = [&PRIME_256[..], &[0; 4], &PRIME_256].concat();
    assert_eq!(verdict(&[PAGE, ADD, load(32), RET], &data), None);
    assert_eq!(
        verdict(&[PAGE, ADD, load(64), RET], &data),
        Some(Primitive::P256)
    );
    // add x5, x5, #32
    assert_eq!(verdict(&[PAGE, ADD, ADD | 32 << 10, RET], &data), None);
}

#[test]
fn what_lies_behind_code_is_none() {
    assert_eq!(verdict(&[RET, 0, PAGE, load(24)], &PRIME_256), None);
    assert_eq!(
        verdict(&[RET, NOP, PAGE, load(24)], &PRIME_256),
        Some(Primitive::P256)
    );
}

#[test]
fn wide_products_that_wrap_around_at_19_or_38_are_curve25519() {
    // extr x11, x12, x11, #51
    let (products, carry) = (MUL.repeat(12), 0x93cb_cd8b);
    let field = |more: &[u32]| verdict(&[&products[..], more, &[carry, RET]].concat(), &[]);
    // add x4, x7, x7, lsl #2; lsl x4, x4, #2; sub x4, x4, x7: as gcc compiles OpenSSL's fe51_sq
    let sums = [0x8b07_08e4, 0xd37e_f484, 0xcb07_0084];
    // add x8, x7, x7, lsl #3; add x4, x7, x8, lsl #1
    let nine = [0x8b07_0ce8, 0x8b08_04e4];
    // mov x5, #19; mul x4, x7, x5
    let product = [0xd280_0265, 0x9b05_7ce4];
    // umulh x10, x7, x4
    let used = 0x9bc4_7cea;
    for by_19 in [&sums[..], &nine, &product] {
        let found = field(&[by_19, &[used; 2]].concat());
        assert_eq!(found, Some(Primitive::Curve25519), "{by_19:x?}");
        let in_other_limbs = [&products[..], by_19, &[used, used, RET]].concat();
        assert_eq!(verdict(&in_other_limbs, &[]), None, "{by_19:x?}");
    }
    // It may be a step on the way to another number.
    assert_eq!(field(&[sums, sums].concat()), None);
    // add x4, x7, x8, lsl #2 makes it 37.
    assert_eq!(field(&[nine[0], 0x8b08_08e4, used, used]), None);
    // mov x5, #38; umulh x10, x7, x5
    let by_38 = [0xd280_04c5, 0x9bc5_7cea];
    assert_eq!(field(&by_38), Some(Primitive::Curve25519));
    assert_eq!(field(&by_38[..1]), None);
    // Without carries it is division by constants.
    let divides = [&MUL[..2].repeat(12), &by_38[..], &[RET]].concat();
    assert_eq!(verdict(&divides, &[]), None);
}

#[test]
fn a_step_of_the_ladder_is_curve25519() {
    // mov x28, #0xdb42; movk x28, #1, lsl #16
    let factor = [0xd29b_685c, 0xf2a0_003c];
    let code = [&MUL.repeat(4), &factor[..], &[RET]].concat();
    assert_eq!(verdict(&code, &[]), Some(Primitive::Curve25519));
    let half = [&MUL.repeat(4), &factor[..1], &[RET]].concat();
    assert_eq!(verdict(&half, &[]), None);
}

#[test]
fn a_prime_and_a_factor_of_its_reduction_are_ml_kem() {
    // sub w2, w0, #3329; mov w8, #5039; umull x0, w2, w8
    let code = [0x5134_0402, 0x5282_75e8, 0x9ba8_7c40, RET];
    assert_eq!(verdict(&code, &[]), Some(Primitive::MlKem));
    for missing in 0..3 {
        let mut other = code;
        other[missing] = NOP;
        assert_eq!(verdict(&other, &[]), None, "{missing}");
    }
}

#[test]
fn limbs_of_28_and_29_bits_are_p256() {
    // and w0, w0, #0xfffffff; ubfx x0, x1, #3, #28; and x0, x0, #0x1fffffff
    let (of_28, cut, of_29) = (0x1200_6c00, 0xd343_7820, 0x9240_7000);
    for first in [of_28, cut] {
        let code = [&[first; 4][..], &[of_29; 4], &[RET]].concat();
        assert_eq!(verdict(&code, &[]), Some(Primitive::P256));
    }
    // lsr x0, x1, #28 cuts nothing.
    let shifts = [&[0xd35c_fc20; 4][..], &[of_29; 4], &[RET]].concat();
    assert_eq!(verdict(&shifts, &[]), None);
}

/// The inner loop of OpenSSL's bn_mul_mont.
const MULTIPLIES: [u32; 9] = [
    0xf840_8428, // ldr x8, [x1], #8
    0xf840_846e, // ldr x14, [x3], #8
    0x9b09_7d0a, // mul x10, x8, x9
    0x9bc9_7d0b, // umulh x11, x8, x9
    0xab07_0146, // adds x6, x10, x7
    0x9b0f_7dd0, // mul x16, x14, x15
    0x9bcf_7dd1, // umulh x17, x14, x15
    0xd100_22b5, // sub x21, x21, #8
    0xb5ff_ff15, // cbnz x21, to its beginning
];
/// OpenSSL's bn_add_words, as gcc compiles it: the carry goes to a register.
const KEEPS: [u32; 10] = [
    0xf865_7824, // ldr x4, [x1, x5, lsl #3]
    0xf865_7846, // ldr x6, [x2, x5, lsl #3]
    0xab00_0084, // adds x4, x4, x0
    0x9a9f_37e0, // cset x0, cs
    0xab04_00c6, // adds x6, x6, x4
    0xf825_7926, // str x6, [x9, x5, lsl #3]
    0x9100_04a5, // add x5, x5, #1
    0x9a80_3400, // cinc x0, x0, cs
    0xeb05_007f, // cmp x3, x5
    0x54ff_fee1, // b.ne to its beginning
];
/// As in GMP's mpn_add_n: the carry stays.
const CARRIES: [u32; 7] = [
    0xa8c1_1424, // ldp x4, x5, [x1], #16
    0xa8c1_2448, // ldp x8, x9, [x2], #16
    0xba08_0084, // adcs x4, x4, x8
    0xba09_00a5, // adcs x5, x5, x9
    0xa881_1404, // stp x4, x5, [x0], #16
    0xd100_0463, // sub x3, x3, #1
    0xb5ff_ff43, // cbnz x3, to its beginning
];

#[test]
fn loops_over_the_words_of_numbers_are_big_number_arithmetic() {
    let verdict_with = |code: &[u32], at: usize, instead: u32| {
        let mut code = code.to_vec();
        code[at] = instead;
        verdict(&[&code[..], &[RET]].concat(), &[])
    };
    let check = |code: &[u32], others: &[(usize, u32)]| {
        let found = verdict_with(code, 0, code[0]);
        assert_eq!(found, Some(Primitive::BigNumber), "{code:x?}");
        for &(at, instead) in others {
            let found = verdict_with(code, at, instead);
            assert_eq!(found, None, "{code:x?}: {at} {instead:x}");
        }
    };
    // mov x14, x7: no word; ldr x8, [x1]: always the same; ret: no loop
    check(&MULTIPLIES, &[(1, 0xaa07_03ee), (0, 0xf940_0028), (8, RET)]);
    // adds x6, x7, x0: no word; str x3, [x9, x5, lsl #3]: no sum; cmp x3, x5 in place of cinc
    check(
        &KEEPS,
        &[(4, 0xab00_00e6), (5, 0xf825_7923), (7, 0xeb05_007f)],
    );
    // adds x4, x4, x8; cmp x3, x5 before it; ldp in place of stp
    check(
        &CARRIES,
        &[(2, 0xab08_0084), (0, 0xeb05_007f), (4, 0xa8c1_1404)],
    );
}

/// As in NSS's `s_mp_sub`: the borrow takes the difference's place, which is stored before.
#[test]
fn a_borrow_may_take_the_place_of_the_difference_behind_its_store() {
    // ldr x1, [x2]; subs x1, x1, x3; str x1, [x2], #8; cset x1, cc; cbnz x4, to its beginning
    let code = [
        0xf940_0041,
        0xeb03_0021,
        0xf800_8441,
        0x9a9f_27e1,
        0xb5ff_ff84,
    ];
    let found = verdict(&[&code[..], &[RET]].concat(), &[]);
    assert_eq!(found, Some(Primitive::BigNumber));
    let mut other = code;
    other.swap(2, 3);
    assert_eq!(verdict(&[&other[..], &[RET]].concat(), &[]), None);
}

#[test]
fn loops_of_so_many_rounds_or_by_a_constant_are_not() {
    // add x5, x5, #1; cmp x5, #48; b.ne to its beginning
    let counts = [0x9100_04a5, 0xf100_c0bf, 0x54ff_fee1];
    let loop_with = |end: &[u32]| verdict(&[&MULTIPLIES[..7], end, &[RET]].concat(), &[]);
    assert_eq!(loop_with(&counts), None);
    // cmp x21, #48 compares another register, sub x5, x5, #1 counts down, and cbnz x5 asks for zero.
    for (at, instead) in [(1, 0xf100_c2bf), (0, 0xd100_04a5), (2, 0xb5ff_fee5)] {
        let mut other = counts;
        other[at] = instead;
        let found = loop_with(&other);
        assert_eq!(found, Some(Primitive::BigNumber), "{instead:x}");
    }
    // mov x9, #10 within the loop: division
    let mut divides = [&[0xd280_0149], &MULTIPLIES[..]].concat();
    *divides.last_mut().unwrap() = 0xb5ff_fef5;
    let mut multiplies = divides.clone();
    multiplies[0] = NOP;
    let found = verdict(&[&multiplies[..], &[RET]].concat(), &[]);
    assert_eq!(found, Some(Primitive::BigNumber));
    // mov x15, #10 as well
    divides.insert(1, 0xd280_014f);
    *divides.last_mut().unwrap() = 0xb5ff_fed5;
    assert_eq!(verdict(&[&divides[..], &[RET]].concat(), &[]), None);
}

/// The size of an array in libgomp's `omp_target_memcpy_rect`.
#[test]
fn products_of_which_only_the_overflow_is_asked_for_are_not() {
    let with = |asks: u32| {
        let code = [
            0xf868_78e9, // ldr x9, [x7, x8, lsl #3]
            0x9bc9_7e6a, // umulh x10, x19, x9
            0x9b09_7e73, // mul x19, x19, x9
            asks,
            0xf868_7b09, // ldr x9, [x24, x8, lsl #3]
            0x9100_0508, // add x8, x8, #1
            0x9bc9_7e8a, // umulh x10, x20, x9
            0x9b09_7e94, // mul x20, x20, x9
            asks,
            0x6b08_007f, // cmp w3, w8
            0x54ff_fecc, // b.gt, to its beginning
            RET,
        ];
        verdict(&code, &[])
    };
    // cbnz x10, out of the loop; cmp x10, #0
    assert_eq!(with(0xb500_06ea), None);
    assert_eq!(with(0xf100_015f), None);
    // cbnz x11
    assert_eq!(with(0xb500_06eb), Some(Primitive::BigNumber));
    assert_eq!(with(NOP), Some(Primitive::BigNumber));
}

#[test]
fn products_by_the_words_of_p256_are_its_field() {
    // mov x1, #-1; mov x1, #0xffffffff00000001
    let words = [0x9280_0001, 0xb260_83e1];
    let factors = words.map(|word| [&[word][..], &MUL].concat()).concat();
    // mov x1, x5: no constant
    let round = [&[0xaa05_03e1], &MUL.repeat(4)[..], &factors].concat();
    let rounds = |number| verdict(&[&round.repeat(number), &[RET][..]].concat(), &[]);
    assert_eq!(rounds(4), Some(Primitive::P256));
    assert_eq!(rounds(3), None);
}

#[test]
fn carries_between_limbs_of_58_bits_are_p521() {
    // and x0, x0, #0x3ffffffffffffff; lsr x0, x0, #58
    let (cut, shift) = (0x9240_e400, 0xd37a_fc00);
    let code = |number| verdict(&[&[cut][..], &[shift].repeat(number), &[RET]].concat(), &[]);
    assert_eq!(code(8), Some(Primitive::P521));
    assert_eq!(code(7), None);
}

#[test]
fn loops_over_limbs_of_56_bits_are_curve448() {
    // and x0, x0, #0xffffffffffffff; lsr x0, x0, #56
    let (cut, shift) = (0x9240_dc00, 0xd378_fc00);
    let code = |more: &[u32]| verdict(&[&MULTIPLIES, more, &[RET]].concat(), &[]);
    assert_eq!(code(&[cut, cut, shift]), Some(Primitive::Curve448));
    for less in [[cut, shift].as_slice(), &[cut, cut]] {
        assert_eq!(code(less), Some(Primitive::BigNumber), "{less:x?}");
    }
}

#[test]
fn what_calls_a_loop_over_numbers_is_arithmetic_if_the_loop_is_its_callee_s() {
    // bl DATA
    let calls = [0x9400_0400, RET];
    let data = |words: &[u32]| -> Vec<u64> {
        let padded = [words, &[NOP]].concat();
        let pairs = padded.as_chunks::<2>().0.iter();
        pairs
            .map(|[one, two]| u64::from(*two) << 32 | u64::from(*one))
            .collect()
    };
    // cbz x0, behind the first return; ret; the loop
    let early = [&[0xb400_0040, RET][..], &MULTIPLIES, &[RET]].concat();
    assert_eq!(verdict(&calls, &data(&early)), Some(Primitive::BigNumber));
    let other = [&[NOP, RET][..], &MULTIPLIES, &[RET]].concat();
    assert_eq!(verdict(&calls, &data(&other)), None);
}

#[test]
fn a_function_ends_where_it_cannot_run_on() {
    let ends = |words: &[u32]| end(Machine::Aarch64, &bytes(words), ADDRESS) - ADDRESS;
    assert_eq!(ends(&[NOP, RET, MUL[0], RET]), 8);
    // What fills the space behind it; constants behind it.
    assert_eq!(ends(&[MUL[0], RET, NOP, NOP, MUL[0], RET]), 16);
    assert_eq!(ends(&[MUL[0], 0, MUL[0], RET]), 4);
    // cbz x0, behind the return; b, behind it
    assert_eq!(ends(&[0xb400_0040, RET, MUL[0], RET, MUL[0]]), 16);
    assert_eq!(ends(&[0x1400_0003, RET, NOP, MUL[0], RET, MUL[0]]), 20);
    // br x5; svc #0, which returns
    assert_eq!(ends(&[0xd61f_00a0, MUL[0], RET]), 4);
    assert_eq!(ends(&[0xd400_0001, MUL[0], RET]), 12);
}

proptest! {
    #[test]
    fn any_words_have_an_answer(
        words in prop::collection::vec(any::<u32>(), 0..1000),
        data in prop::collection::vec(any::<u64>(), 0..40),
        address in any::<u64>(),
    ) {
        let first = verdict(&words, &data);
        prop_assert_eq!(first, verdict(&words, &data));
        by_code(Machine::Aarch64, &bytes(&words), address, |_, _| Vec::new());
        end(Machine::Aarch64, &bytes(&words), address);
    }

    /// Words that are instructions, in an order in which nobody wrote them.
    #[test]
    fn any_instructions_have_an_answer(
        picked in prop::collection::vec((any::<prop::sample::Index>(), 0_u32..32), 0..400),
    ) {
        let known = [&MUL[..], &MULTIPLIES, &KEEPS, &CARRIES, &[PAGE, ADD, NOP, RET]].concat();
        let words: Vec<u32> = picked.iter().map(|(at, register)| at.get(&known) ^ register).collect();
        prop_assert_eq!(verdict(&words, &PRIME_256), verdict(&words, &PRIME_256));
    }
}
