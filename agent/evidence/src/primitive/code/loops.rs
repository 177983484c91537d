//! Loops over numbers of any length: each time round they multiply the next words of a number in
//! memory, or add them with a carry. Arithmetic on numbers of one length is unrolled, or takes its operands from fixed places.

use super::factors::Factors;
use super::step::{Does, Flow, Registers, Step};

/// Longer loops are not those of one multiplication.
const MAX_LENGTH: usize = 400;
/// At least this number of multiplications, and two thirds of those in the loop, must be of words that it goes through.
const LEAST: usize = 2;

/// Whether a function has such a loop.
pub(super) fn go_through_numbers(code: &[Step]) -> bool {
    has_loop(code, |body, jump| {
        !counts_to_constant(body, jump) && is_through_words(body)
    })
}

/// Whether a function has a loop over words, or limbs, of which there may be a fixed number.
pub(super) fn go_through_words(code: &[Step]) -> bool {
    has_loop(code, |body, _| is_through_words(body))
}

/// `is_one`: by its steps without the last jump, and that jump.
fn has_loop(code: &[Step], is_one: impl Fn(&[Step], &Step) -> bool) -> bool {
    code.iter().enumerate().any(|(end, jump)| {
        let (target, is_conditional) = match jump.flow {
            Flow::Branch(target) => (target, true),
            Flow::Jump(target) => (target, false),
            _ => return false,
        };
        if target > jump.address {
            return false;
        }
        let start = code.partition_point(|one| one.address < target);
        let body = code.get(start..end).filter(|one| one.len() <= MAX_LENGTH);
        body.is_some_and(|body| {
            // Assembly written by hand may end before its last jump.
            let ends = is_conditional || body.iter().any(|one| leaves(one, jump.address));
            ends && is_innermost(body, target) && is_one(body, jump)
        })
    })
}

/// Whether it may jump out of a loop with that last instruction.
fn leaves(one: &Step, last: u64) -> bool {
    matches!(one.flow, Flow::Branch(target) if target > last)
}

/// Of a loop that begins at `first`.
fn is_innermost(body: &[Step], first: u64) -> bool {
    body.iter().all(|one| match one.flow {
        Flow::Next | Flow::Pad => true,
        Flow::Branch(target) | Flow::Jump(target) => !(first..=one.address).contains(&target),
        _ => false,
    })
}

/// Whether the number of its rounds is a constant: what moves on by addition is compared with one. What counts down may
/// be compared with how many words are left.
fn counts_to_constant(body: &[Step], jump: &Step) -> bool {
    let counters = body.iter().fold(0, |all, one| all | one.counts);
    let mut before = body.iter().chain([jump]).rev();
    let last = before.find(|one| one.sets_condition);
    last.is_some_and(|last| last.limits & counters != 0)
}

/// The steps of a loop, and of each whether an operand of it is a word that the loop goes through.
type Marked<'a> = Vec<(&'a Step, bool)>;

fn is_through_words(body: &[Step]) -> bool {
    let moving = body.iter().fold(0, |all, one| all | one.advances);
    let marked = marked(body, moving);
    let mut factors = Factors::default();
    let (mut of_words, mut all) = (0, 0);
    for (at, (one, is_word)) in marked.iter().enumerate() {
        // Division by a constant is a multiplication as well.
        let is_by_constant = factors.note(one);
        if matches!(one.does, Does::Multiply(_)) {
            all += 1;
            let is_product = !is_by_constant && !asks_for_overflow(body, at);
            of_words += usize::from(is_product && *is_word);
        }
    }
    (of_words >= LEAST && of_words * 3 >= all * 2)
        || carries_on(&marked, moving)
        || keeps_carries(&marked, moving)
}

/// Whether what follows a product only asks if it is longer than a word: sizes of arrays.
fn asks_for_overflow(body: &[Step], product: usize) -> bool {
    let mut behind = body.iter().skip(product + 1);
    let next = behind.find(|one| one.reads_carry || one.asks_for_overflow || one.sets_condition);
    next.is_some_and(|one| one.asks_for_overflow)
}

fn marked(body: &[Step], moving: Registers) -> Marked<'_> {
    let mut loaded = 0;
    let marks = body.iter().map(|one| {
        let through = one.through & moving != 0;
        let is_word = match one.does {
            Does::Multiply(of) => through || of & loaded != 0,
            Does::Sum { of, .. } => (through && one.is_word) || of & loaded != 0,
            _ => false,
        };
        let copied = one.from & loaded != 0;
        loaded &= !(one.loads | one.copies | one.changes);
        loaded |= if through { one.loads } else { 0 };
        loaded |= if copied { one.copies } else { 0 };
        (one, is_word)
    });
    marks.collect()
}

/// Whether a loop adds or subtracts words of numbers in memory, with the carry of the words before: that
/// of the last round, if it is the first instruction to change the carry. It stores the result as it goes.
fn carries_on(body: &Marked, moving: Registers) -> bool {
    let carries = |one: &Step| {
        matches!(
            one.does,
            Does::Sum {
                with_carry: true,
                ..
            }
        )
    };
    let mut changing = body.iter().filter(|(one, _)| one.writes_carry);
    changing.next().is_some_and(|(one, _)| carries(one))
        && body.iter().any(|(one, is_word)| carries(one) && *is_word)
        && body
            .iter()
            .any(|(one, _)| one.stores && is_word_through(one, moving))
}

/// The same where a compiler wrote it: the carry goes to a register, and from there to the next round.
fn keeps_carries(body: &Marked, moving: Registers) -> bool {
    body.iter().enumerate().any(|(at, (sum, is_word))| {
        let Does::Sum {
            to,
            with_carry: false,
            ..
        } = sum.does
        else {
            return false;
        };
        let behind = body.iter().skip(at + 1).map(|(one, _)| *one);
        let mut uses = behind.clone().enumerate();
        let carry = uses.find(|(_, one)| one.reads_carry || one.writes_carry);
        let Some((carry_at, carry)) = carry.filter(|(_, one)| one.does == Does::KeepCarry) else {
            return false;
        };
        // As where sums are cut at the greatest number.
        let is_asked_for = behind.clone().any(|one| one.asks & carry.changes != 0);
        let takes_its_place = carry.changes & to != 0;
        let mut sums = behind.take(if takes_its_place {
            carry_at
        } else {
            usize::MAX
        });
        let stores = |one: &Step| one.stored & to != 0 && is_word_through(one, moving);
        *is_word && !is_asked_for && sums.any(stores)
    })
}

/// Whether it reads or writes words through a register that moves on.
fn is_word_through(one: &Step, moving: Registers) -> bool {
    one.is_word && one.through & moving != 0
}
