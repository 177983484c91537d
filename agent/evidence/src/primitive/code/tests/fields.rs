//! Arithmetic on numbers of a fixed length, as in the fields of curves. Its constants identify it, and it must not count
//! as arithmetic on numbers of any length.

use super::*;

/// Sets %rax to a number.
fn load(number: u64) -> Vec<u8> {
    [&[0x48, 0xb8], &number.to_le_bytes()[..]].concat()
}

/// Rounds of Montgomery's reduction: products of an element's words, and by those of the prime.
fn rounds(number: usize, products: usize, words: &[u64]) -> Vec<u8> {
    let factors = words.iter().map(|word| [&load(*word), MUL].concat());
    let round = [MUL.repeat(products), factors.collect::<Vec<_>>().concat()].concat();
    [&round.repeat(number), RET].concat()
}

#[test]
fn products_by_the_words_of_a_prime_are_its_field() {
    const TOP: u64 = 0xffff_ffff_0000_0001;
    let p256 = rounds(4, 4, &[u64::MAX, TOP]);
    assert_eq!(verdict(&p256, &[]), Some(Primitive::P256));
    assert_eq!(verdict(&rounds(3, 4, &[u64::MAX, TOP]), &[]), None);
    // The prime of the Goldilocks field is this word.
    assert_eq!(verdict(&rounds(16, 1, &[TOP]), &[]), None);
    // The order of BLS12-381's groups ends with it.
    let bls = [TOP, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805];
    assert_eq!(verdict(&rounds(4, 4, &bls), &[]), None);
    let words = [0xffff_ffff, 0xffff_ffff_0000_0000, u64::MAX - 1];
    let p384 = rounds(6, 6, &words);
    assert_eq!(verdict(&p384, &[]), Some(Primitive::P384));
    // 2^384 less the prime, by the words of which s2n-bignum multiplies: the first is one of P-256's as well.
    let less = rounds(6, 6, &[TOP, 0xffff_ffff]);
    assert_eq!(verdict(&less, &[]), Some(Primitive::P384));
    assert_eq!(verdict(&rounds(4, 4, &[TOP, 0xffff_ffff]), &[]), None);
    let p256 = rounds(4, 4, &[TOP, 1 << 32]);
    assert_eq!(verdict(&p256, &[]), Some(Primitive::P256));
    // The prime of SM2.
    let sm2 = [u64::MAX, 0xffff_ffff_0000_0000, 0xffff_fffe_ffff_ffff];
    assert_eq!(verdict(&rounds(4, 4, &sm2), &[]), None);
}

/// As NSS subtracts: `felem_diff` of `ecp_256_32.c`.
#[test]
fn a_loop_that_carries_between_limbs_of_28_and_29_bits_is_p256() {
    // shr $28,%ecx; and $0xfffffff,%edx; shr $29,%r11d; and $0x1fffffff,%edx
    let (carry_28, cut_28) = ([0xc1, 0xe9, 0x1c], [0x81, 0xe2, 0xff, 0xff, 0xff, 0x0f]);
    let (carry_29, cut_29) = (
        [0x41, 0xc1, 0xeb, 0x1d],
        [0x81, 0xe2, 0xff, 0xff, 0xff, 0x1f],
    );
    let of = |parts: &[&[u8]]| verdict(&[&parts.concat(), RET].concat(), &[]);
    let all: [&[u8]; 4] = [&carry_28, &cut_28, &carry_29, &cut_29];
    assert_eq!(of(&all), Some(Primitive::P256));
    for left_out in 0..all.len() {
        let mut others = all.to_vec();
        others.remove(left_out);
        assert_eq!(of(&others), None, "{left_out}");
    }
}

#[test]
fn carries_between_limbs_of_58_bits_are_p521() {
    // shr $58,%rax
    let carries = |number: usize| [0x48, 0xc1, 0xe8, 0x3a].repeat(number);
    let mask = load((1 << 58) - 1);
    let code = |number| [&mask[..], &carries(number), RET].concat();
    assert_eq!(verdict(&code(8), &[]), Some(Primitive::P521));
    assert_eq!(verdict(&code(7), &[]), None);
    assert_eq!(verdict(&[&carries(8), RET].concat(), &[]), None);
    // jne, behind each of them.
    let asked = [&carries(1)[..], &[0x75, 0]].concat().repeat(8);
    assert_eq!(verdict(&[&mask[..], &asked, RET].concat(), &[]), None);
}

#[test]
fn loops_beside_limbs_of_56_bits_are_no_arithmetic_on_numbers_of_any_length() {
    // shrd $56,%rdx,%rax; shld $8,%rdx,%rax
    let (right, left) = ([0x48, 0x0f, 0xac, 0xd0, 0x38], [0x48, 0x0f, 0xa4, 0xd0, 8]);
    assert_eq!(verdict(&[LOOP, &right, &left, RET].concat(), &[]), None);
    let once = [LOOP, &right, RET].concat();
    assert_eq!(verdict(&once, &[]), Some(Primitive::BigNumber));
    // With the mask of so many bits they are Curve448's.
    let masks = load((1 << 56) - 1).repeat(2);
    let cut = [LOOP, &masks, &right, &left, RET].concat();
    assert_eq!(verdict(&cut, &[]), Some(Primitive::Curve448));
}

#[test]
fn loops_of_so_many_rounds_are_not() {
    // cmp $48,%r15 counts all rounds; cmp $3,%r9 those that are left.
    let ends = |compare: [u8; 4]| {
        let mut code = [&LOOP[..18], &compare, &[0x75, 0xe8], RET].concat();
        code.push(0);
        verdict(&code, &[])
    };
    assert_eq!(ends([0x49, 0x83, 0xff, 0x30]), None);
    assert_eq!(ends([0x49, 0x83, 0xf9, 0x03]), Some(Primitive::BigNumber));
}

#[test]
fn products_of_which_only_the_overflow_counts_are_not() {
    // jo behind the loop, after each product.
    let asks = |to: u8| [0x70, to];
    let code = [
        &LOOP[..7],
        &asks(19),
        &LOOP[7..18],
        &asks(6),
        &LOOP[18..21],
        &[0x75, 0xe5],
        RET,
    ];
    assert_eq!(verdict(&code.concat(), &[]), None);
}

#[test]
fn loops_that_divide_by_a_constant_are_not() {
    // movabs $10,%rbx; movabs $10,%rbp: both products are by it.
    let ten = 10_u64.to_le_bytes();
    let code = [
        &[0x48, 0xbb][..],
        &ten,
        &[0x48, 0xbd],
        &ten,
        &LOOP[..21],
        &[0x75, 0xd5],
        RET,
    ];
    assert_eq!(verdict(&code.concat(), &[]), None);
}
