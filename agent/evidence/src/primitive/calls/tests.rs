use super::*;
use proptest::prelude::*;

const X86_64: Machine = Machine::X86_64;
const BIG: Proof = Proof::BigNumber;
const NONE: Proof = Proof::None;

fn around(proofs: &[Proof], called: &[Vec<usize>]) -> Vec<usize> {
    around_big_numbers(proofs, &Calls::new(called.to_vec()))
}

fn powers(proofs: &[Proof], called: &[Vec<usize>]) -> Vec<usize> {
    around_powers(proofs, &Calls::new(called.to_vec()))
}

#[test]
fn calls_and_jumps_to_the_beginning_of_functions_count() {
    let starts = [0x1000, 0x1100, 0x1200];
    // call 0x1100; jmp 0x1201; jmp 0x1200; call 0x1100; call 0x1000, itself
    let mut code = vec![0xe8, 0xfb, 0, 0, 0];
    code.extend([0xe9, 0xf7, 1, 0, 0]);
    code.extend([0xe9, 0xf1, 1, 0, 0]);
    code.extend([0xe8, 0xec, 0, 0, 0]);
    code.extend([0xe8, 0xe7, 0xff, 0xff, 0xff]);
    assert_eq!(called_by(X86_64, &code, 0x1000, &starts), [1, 2]);
}

#[test]
fn calls_and_jumps_of_aarch64_count() {
    let starts = [0x1000, 0x1100, 0x1200];
    // bl 0x1100; b 0x1204; b 0x1200; bl 0x1000, itself; ret
    let words = [
        0x9400_0040_u32,
        0x1400_0080,
        0x1400_007e,
        0x97ff_fffd,
        0xd65f_03c0,
    ];
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let called = |code: &[u8], address| called_by(Machine::Aarch64, code, address, &starts);
    assert_eq!(called(&code, 0x1000), [1, 2]);
    // bl 0x1100 from behind
    assert_eq!(called(&0x97ff_ffff_u32.to_le_bytes(), 0x1104), [1]);
}

#[test]
fn calls_between_functions_lead_to_others() {
    let functions = [(0x1000, 0x1100), (0x1200, 0x1300)];
    let targets = [0x10fc_u32, 0x1100, 0x1150, 0x11fc, 0x1200, 0x1300, 0x1400];
    let calls = targets.iter().zip((0x1005_u32..).step_by(5));
    let code = calls.map(|(to, next)| [&[CALL][..], &(to - next).to_le_bytes()].concat());
    let code: Vec<u8> = code.flatten().collect();
    let between: Vec<u64> = called_between(X86_64, &code, 0x1000, &functions).collect();
    assert_eq!(between, [0x1100, 0x1150, 0x11fc, 0x1300, 0x1400]);
    // What only jumps there may be a part of the function before.
    let jumps: Vec<u8> = code
        .iter()
        .map(|byte| byte | u8::from(*byte == CALL))
        .collect();
    assert_eq!(
        called_between(X86_64, &jumps, 0x1000, &functions).count(),
        0
    );
}

#[test]
fn what_calls_mostly_arithmetic_belongs_to_it() {
    // 0 is proved; 1 calls it and 3; 2 calls it, 3 and 4.
    let called = [vec![], vec![0, 3], vec![0, 3, 4], vec![], vec![]];
    let proofs = [BIG, NONE, NONE, NONE, NONE];
    assert_eq!(around(&proofs, &called), [1]);
}

#[test]
fn what_arithmetic_calls_belongs_to_it_unless_others_do_more() {
    // 0 and 1 are proved, and call 2 and 3; 4 to 10 call 3, and 4 calls 2.
    let mut called = vec![vec![2, 3], vec![2, 3], vec![], vec![], vec![2, 3, 5, 6]];
    called.extend(vec![vec![3, 11]; 6]);
    called.push(vec![]);
    let mut proofs = vec![BIG, BIG];
    proofs.extend([NONE; 10]);
    assert_eq!(around(&proofs, &called), [2]);
}

#[test]
fn what_a_fifth_of_many_callers_are_belongs_to_it_and_proves_nothing() {
    let helper = 5 * MANY_CALLERS;
    let around = |proved: usize| {
        // The last calls nothing but the helper.
        let mut called = vec![vec![helper]; helper];
        called.push(vec![]);
        let proof = |at: usize| match at {
            at if at < proved => BIG,
            at if at < helper - 1 => Proof::Other,
            _ => NONE,
        };
        let proofs: Vec<Proof> = (0..=helper).map(proof).collect();
        around(&proofs, &called)
    };
    assert_eq!(around(MANY_CALLERS), [helper]);
    assert_eq!(around(MANY_CALLERS - 1), [0; 0]);
}

#[test]
fn what_everything_calls_does_not() {
    let callers = |number: usize| {
        let mut called = vec![vec![number]; number];
        called.push(vec![]);
        let mut proofs = vec![BIG; number];
        proofs.push(NONE);
        around(&proofs, &called)
    };
    assert_eq!(callers(MOST_CALLERS), [MOST_CALLERS]);
    assert_eq!(callers(MOST_CALLERS + 1), [0; 0]);
}

/// An allocator that arithmetic calls most is none, and nor is who calls nothing else.
#[test]
fn what_serves_much_proves_nothing_of_its_callers() {
    let number_around = |callers: usize| {
        // All but the last call the one before it; those proved are three of four.
        let mut called = vec![vec![callers]; callers];
        called.push(vec![]);
        let proof = |at: usize| if at < callers / 4 { NONE } else { BIG };
        let mut proofs: Vec<Proof> = (0..callers).map(proof).collect();
        proofs.push(NONE);
        around(&proofs, &called).len()
    };
    assert_eq!(number_around(MOST_SERVED), 1 + MOST_SERVED / 4);
    assert_eq!(number_around(MOST_SERVED + 1), 1);
}

#[test]
fn steps_of_an_exponentiation_and_their_squares_are_told() {
    const POWER: Proof = Proof::Power;
    // 0 multiplies with a power, 1 and 4 square; 2 calls all of them, 3 only 1.
    let mut called = vec![vec![], vec![], vec![0, 1, 4], vec![1], vec![]];
    let mut proofs = vec![POWER, BIG, NONE, BIG, BIG];
    assert_eq!(powers(&proofs, &called), [1, 2, 4]);
    // A function with many calls uses 4 as well, and the product.
    called.push(vec![0, 2, 3, 4, 6]);
    called.push(vec![]);
    proofs.extend([NONE; 2]);
    assert_eq!(powers(&proofs, &called), [1, 2]);
    // Without the product it is no exponentiation.
    let squares: Vec<Proof> = proofs
        .iter()
        .map(|one| if *one == POWER { BIG } else { *one })
        .collect();
    assert_eq!(powers(&squares, &called), [0; 0]);
}

#[test]
fn arithmetic_that_only_code_for_one_curve_calls_is_for_that_curve() {
    let (p256, sha) = (Some(Primitive::P256), Some(Primitive::Sha));
    // 0 and 1 are proved; both call 2, 1 and 5 call 3, 2 calls 4.
    let called = [vec![2], vec![2, 3], vec![4], vec![], vec![], vec![3]];
    let calls = Calls::new(called.to_vec());
    let within = |second, is_arithmetic: [bool; 6]| {
        let mut verdicts = [p256, second, None, None, None, None];
        within(
            &CURVES,
            &mut verdicts,
            |one| has(&is_arithmetic, one),
            &calls,
        );
        verdicts
    };
    let found = [p256, p256, p256, None, p256, None];
    assert_eq!(within(p256, [true; 6]), found);
    for other in [sha, Some(Primitive::P384), None] {
        let unchanged = [p256, other, None, None, None, None];
        assert_eq!(within(other, [true; 6]), unchanged);
    }
    let copies = [true, true, false, true, true, true];
    assert_eq!(within(p256, copies), [p256, p256, None, None, None, None]);
}

/// P-384 in ring multiplies by `bn_mul_mont`, and adds by `LIMBS_add_mod`.
#[test]
fn arithmetic_beside_products_of_any_length_is_for_these_too() {
    use Primitive::{BigNumber, P384};
    let within = |second: &[usize]| {
        // 0 and 1 are proved and call 2, which multiplies, or nothing but 3.
        let called = [vec![2, 3], second.to_vec(), vec![], vec![]];
        let mut verdicts = [Some(P384), Some(P384), Some(BigNumber), None];
        let calls = Calls::new(called.to_vec());
        within(&CURVES, &mut verdicts, |_| true, &calls);
        verdicts[3]
    };
    assert_eq!(within(&[2, 3]), Some(BigNumber));
    assert_eq!(within(&[3]), Some(P384));
}

#[test]
fn proved_functions_stay_what_they_are() {
    let called = [vec![], vec![0]];
    assert_eq!(around(&[BIG, Proof::Other], &called), [0; 0]);
}

proptest! {
    #[test]
    fn any_calls_have_an_answer(
        proofs in prop::collection::vec(prop::sample::select(vec![BIG, NONE, Proof::Other, Proof::Power]), 0..40),
        called in prop::collection::vec(prop::collection::vec(0_usize..50, 0..6), 0..50),
    ) {
        for one in around(&proofs, &called) {
            prop_assert_eq!(proofs.get(one), Some(&NONE));
        }
        for one in powers(&proofs, &called) {
            prop_assert!(proofs.get(one) != Some(&Proof::Other));
        }
    }

    #[test]
    fn any_bytes_call_nothing_but_functions(
        code in prop::collection::vec(any::<u8>(), 0..400),
        address in any::<u64>(),
    ) {
        let starts = [0, address, u64::MAX];
        for machine in [X86_64, Machine::Aarch64] {
            for one in called_by(machine, &code, address, &starts) {
                prop_assert!(one < starts.len());
            }
        }
    }
}

#[test]
fn loops_beside_the_code_of_one_curve_reduce_its_scalars() {
    use Primitive::{BigNumber, Curve25519, P256};
    let after = |called: &[usize]| {
        let mut verdicts = [BigNumber, BigNumber, P256, P256, Curve25519].map(Some);
        let calls = [called, &[], &[], &[], &[]].map(<[usize]>::to_vec);
        around_curves(&mut verdicts, &Calls::new(calls.to_vec()));
        verdicts[0]
    };
    assert_eq!(after(&[1, 2]), Some(P256));
    assert_eq!(after(&[1, 2, 3]), Some(P256));
    // Code for several curves.
    assert_eq!(after(&[1, 2, 4]), Some(BigNumber));
    assert_eq!(after(&[1]), Some(BigNumber));
}
