//! Functions around arithmetic on big numbers, by which functions call which: compiled code that compares,
//! copies and shifts such numbers has nothing of its own that proves it.
//!
//! A function belongs to it if half of what it calls does, or if a quarter of its callers do, two at
//! least. Code that everything calls, such as allocators, has no share in this.

/// Of what a function calls, this part.
const CALLED: (usize, usize) = (1, 2);
/// Of its callers, this part, and so many.
const CALLING: (usize, usize) = (1, 4);
const LEAST_CALLERS: usize = 2;
/// What has more callers serves everything.
const MOST_CALLERS: usize = 100;
/// In each round, what was found in the last one counts: so far from what is proved, chains of calls lead.
/// Farther, they lead out of arithmetic (docs/journal/2026-11-25-steps-on-other-stacks.md).
const ROUNDS: usize = 6;

/// A step of an exponentiation calls no more functions.
const MOST_CALLED: usize = 4;

/// Behind the last function of a library there may be so much code that is not described.
const LONGEST_GAP: u64 = 1 << 20;
const CALL: u8 = 0xe8;
const JUMP: u8 = 0xe9;

/// The functions that code calls or jumps to: their places in `starts`, which is sorted.
pub(super) fn called_by(code: &[u8], address: u64, starts: &[u64]) -> Vec<usize> {
    let own = starts.binary_search(&address).ok();
    let targets = targets(code, address, &[CALL, JUMP]);
    let called = targets.filter_map(|target| starts.binary_search(&target).ok());
    let mut found: Vec<usize> = called.filter(|one| Some(*one) != own).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Where code calls between these functions, which are in order: functions that nobody described, as their
/// assembly was written by hand.
pub(super) fn called_between(
    code: &[u8],
    address: u64,
    functions: &[(u64, u64)],
) -> impl Iterator<Item = u64> {
    targets(code, address, &[CALL]).filter(|target| {
        let after = functions.partition_point(|(first, _)| first <= target);
        let before = after.checked_sub(1).and_then(|at| functions.get(at));
        before.is_some_and(|(_, end)| (*end..end.saturating_add(LONGEST_GAP)).contains(target))
    })
}

/// Where calls or jumps lead. They are found by their bytes; what only looks like one hardly ever leads to the
/// beginning of a function.
fn targets(code: &[u8], address: u64, how: &[u8]) -> impl Iterator<Item = u64> {
    code.windows(5).enumerate().filter_map(move |(at, bytes)| {
        let &[first, a, b, c, d] = bytes else {
            return None;
        };
        let distance = i64::from(i32::from_le_bytes([a, b, c, d]));
        let next = address.wrapping_add(at as u64).wrapping_add(5);
        how.contains(&first)
            .then(|| next.wrapping_add_signed(distance))
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

    fn joins(&self, one: usize, belongs: &[bool]) -> bool {
        let among = |those: &[usize]| those.iter().filter(|one| has(belongs, **one)).count();
        let called = of(&self.called, one).iter().copied();
        let called: Vec<usize> = called.filter(|one| !self.is_common(*one)).collect();
        let callers = of(&self.callers, one);
        let (below, above) = (among(&called), among(callers));
        let calls = below > 0 && below * CALLED.1 >= called.len() * CALLED.0;
        let is_called = above >= LEAST_CALLERS && above * CALLING.1 >= callers.len() * CALLING.0;
        calls || (is_called && !self.is_common(one))
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
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        let unproved = proofs.iter().zip(&belongs).enumerate();
        let unproved =
            unproved.filter(|(_, (proof, belongs))| **proof == Proof::None && !**belongs);
        let joining: Vec<usize> = unproved
            .map(|(one, _)| one)
            .filter(|one| calls.joins(*one, &belongs))
            .collect();
        if joining.is_empty() {
            break;
        }
        for one in &joining {
            if let Some(belongs) = belongs.get_mut(*one) {
                *belongs = true;
            }
        }
        found.extend(joining);
    }
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

fn has(belongs: &[bool], one: usize) -> bool {
    belongs.get(one) == Some(&true)
}

fn of(all: &[Vec<usize>], one: usize) -> &[usize] {
    all.get(one).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        assert_eq!(called_by(&code, 0x1000, &starts), [1, 2]);
    }

    #[test]
    fn calls_between_functions_lead_to_others() {
        let functions = [(0x1000, 0x1100), (0x1200, 0x1300)];
        let targets = [0x10fc_u32, 0x1100, 0x1150, 0x11fc, 0x1200, 0x1300, 0x1400];
        let calls = targets.iter().zip((0x1005_u32..).step_by(5));
        let code = calls.map(|(to, next)| [&[CALL][..], &(to - next).to_le_bytes()].concat());
        let code: Vec<u8> = code.flatten().collect();
        let between: Vec<u64> = called_between(&code, 0x1000, &functions).collect();
        assert_eq!(between, [0x1100, 0x1150, 0x11fc, 0x1300, 0x1400]);
        // What only jumps there may be a part of the function before.
        let jumps: Vec<u8> = code
            .iter()
            .map(|byte| byte | u8::from(*byte == CALL))
            .collect();
        assert_eq!(called_between(&jumps, 0x1000, &functions).count(), 0);
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
            for one in called_by(&code, address, &starts) {
                prop_assert!(one < starts.len());
            }
        }
    }
}
