//! Loops over numbers of any length: each time round they multiply the next words of a number in
//! memory, or add them with a carry. Arithmetic on numbers of one length is unrolled, or takes its operands from fixed places.

use iced_x86::{FlowControl, Instruction, MemorySize, Mnemonic as M, OpKind, Register, RflagsBits};

use super::factors::{Factors, is_wide};

/// So many registers there are.
const REGISTERS: usize = 16;
/// Longer loops are not those of one multiplication.
const MAX_LENGTH: usize = 400;
/// So many multiplications, and this part of all in the loop, must be of words that it goes through.
const LEAST: usize = 2;
/// So many limbs are cut where an element of a field has some.
const LEAST_CUT: usize = 2;

type Set = [bool; REGISTERS];

/// Whether a function has such a loop.
pub(super) fn go_through_numbers(code: &[Instruction]) -> bool {
    !cuts_limbs(code)
        && code.iter().enumerate().any(|(end, jump)| {
            let flow = jump.flow_control();
            let target = jump.near_branch_target();
            let jumps = matches!(
                flow,
                FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
            );
            if !jumps || target > jump.ip() {
                return false;
            }
            let start = code.partition_point(|one| one.ip() < target);
            let body = code.get(start..end).filter(|one| one.len() <= MAX_LENGTH);
            body.is_some_and(|body| {
                // Assembly written by hand may end before its last jump.
                let ends = flow == FlowControl::ConditionalBranch
                    || body.iter().any(|one| leaves(one, jump.ip()));
                ends && is_innermost(body, target)
                    && !counts_to_constant(body)
                    && is_through_numbers(body)
            })
        })
}

/// Whether it carries from limbs of 56 bits: elements of the fields of P-224, P-384 and Curve448. Numbers of any length
/// are kept in whole words.
fn cuts_limbs(code: &[Instruction]) -> bool {
    let cuts = code.iter().filter(|one| match one.mnemonic() {
        M::Shrd => one.op2_kind() == OpKind::Immediate8 && one.immediate8() == 56,
        M::Shld => one.op2_kind() == OpKind::Immediate8 && one.immediate8() == 8,
        _ => false,
    });
    cuts.count() >= LEAST_CUT
}

/// Whether it may jump out of a loop with that last instruction.
fn leaves(one: &Instruction, last: u64) -> bool {
    one.flow_control() == FlowControl::ConditionalBranch && one.near_branch_target() > last
}

/// Of a loop that begins at `first`.
fn is_innermost(body: &[Instruction], first: u64) -> bool {
    body.iter().all(|one| match one.flow_control() {
        FlowControl::Next => true,
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch => {
            !(first..=one.ip()).contains(&one.near_branch_target())
        }
        _ => false,
    })
}

/// Whether the number of its rounds is a constant: what moves on by addition is compared with one. What counts down may
/// be compared with how many words are left.
fn counts_to_constant(body: &[Instruction]) -> bool {
    let mut before = body.iter().rev();
    let last = before.find(|one| one.rflags_modified() != RflagsBits::NONE);
    last.is_some_and(|last| {
        let counter = last.op0_register().full_register();
        let is_counter = |one: &Instruction| {
            let adds = match one.mnemonic() {
                M::Add => one.try_immediate(1).is_ok_and(|by| by.cast_signed() > 0),
                M::Lea => one.memory_displacement64().cast_signed() > 0,
                M::Inc => true,
                _ => false,
            };
            adds && advanced(one) == Some(counter)
        };
        last.mnemonic() == M::Cmp
            && last.try_immediate(1).is_ok_and(|to| to.cast_signed() > 0)
            && body.iter().any(is_counter)
    })
}

fn is_through_numbers(body: &[Instruction]) -> bool {
    let mut moving = Set::default();
    for one in body {
        if let Some(register) = advanced(one) {
            set(&mut moving, register, true);
        }
    }
    let (mut loaded, mut of_moving, mut all) = (Set::default(), 0, 0);
    let mut factors = Factors::default();
    for (at, one) in body.iter().enumerate() {
        // Division by a constant is a multiplication as well.
        let is_by_constant = factors.note(one);
        if is_wide(one) {
            all += 1;
            let is_product = !is_by_constant && !asks_for_overflow(body, at);
            of_moving += usize::from(is_product && is_of_moving(one, &moving, &loaded));
        }
        note_loads(one, &moving, &mut loaded);
    }
    (of_moving >= LEAST && of_moving * 3 >= all * 2)
        || carries_on(body, &moving)
        || keeps_carries(body, &moving)
}

/// Whether what follows a product only asks if it is longer than a word: sizes of arrays.
fn asks_for_overflow(body: &[Instruction], product: usize) -> bool {
    let mut behind = body.iter().skip(product + 1);
    let flags = RflagsBits::CF | RflagsBits::OF;
    let next = behind.find(|one| (one.rflags_read() | one.rflags_modified()) & flags != 0);
    next.is_some_and(|one| one.rflags_read() & RflagsBits::OF != 0 && one.mnemonic() != M::Adox)
}

/// Whether a loop adds or subtracts words of numbers in memory, with the carry of the words before: that
/// of the last round, if it is the first instruction to change the carry. It stores the result as it goes.
fn carries_on(body: &[Instruction], moving: &Set) -> bool {
    let is_memory =
        |one: &Instruction| one.memory_size() == MemorySize::UInt64 && is_through(one, moving);
    let carries = |one: &Instruction| matches!(one.mnemonic(), M::Adc | M::Sbb);
    let mut changing = body
        .iter()
        .filter(|one| one.rflags_modified() & RflagsBits::CF != 0);
    changing.next().is_some_and(carries)
        && body.iter().any(|one| carries(one) && is_memory(one))
        && body.iter().any(|one| {
            let stores = matches!(one.mnemonic(), M::Mov | M::Adc | M::Sbb);
            stores && one.op0_kind() == OpKind::Memory && is_memory(one)
        })
}

/// The same where a compiler wrote it: the carry goes to a register, and from there to the next round.
fn keeps_carries(body: &[Instruction], moving: &Set) -> bool {
    let is_word = |one: &Instruction| one.memory_size() == MemorySize::UInt64;
    body.iter().enumerate().any(|(at, sum)| {
        let register = sum.op0_register();
        let adds = matches!(sum.mnemonic(), M::Add | M::Sub)
            && sum.op0_kind() == OpKind::Register
            && sum.op1_kind() == OpKind::Memory
            && is_word(sum)
            && is_through(sum, moving);
        let mut behind = body.iter().skip(at + 1);
        adds && behind
            .clone()
            .find(|one| uses_carry(one))
            .filter(|one| matches!(one.mnemonic(), M::Setb | M::Setae))
            // Then only the carry is kept.
            .filter(|one| one.op0_register().full_register() != register)
            .is_some_and(|carry| !is_asked_for(carry.op0_register(), behind.clone()))
            && behind.any(|one| {
                one.mnemonic() == M::Mov
                    && one.op0_kind() == OpKind::Memory
                    && one.op1_register() == register
                    && is_word(one)
                    && is_through(one, moving)
            })
    })
}

/// Whether a carry is only asked for, as where sums are cut at the greatest number.
fn is_asked_for<'a>(carry: Register, mut behind: impl Iterator<Item = &'a Instruction>) -> bool {
    let is_it = |one: Register| one.full_register() == carry.full_register();
    behind.any(|one| {
        one.mnemonic() == M::Test && is_it(one.op0_register()) && is_it(one.op1_register())
    })
}

/// Whether it reads the carry, or ends it.
fn uses_carry(one: &Instruction) -> bool {
    (one.rflags_read() | one.rflags_modified()) & RflagsBits::CF != 0
}

/// The register that an instruction moves on by a constant.
fn advanced(one: &Instruction) -> Option<Register> {
    let register = one.op0_register();
    let moves = match one.mnemonic() {
        M::Lea => one.memory_base() == register && one.memory_index() == Register::None,
        M::Add | M::Sub => one.op1_kind() != OpKind::Register && one.op1_kind() != OpKind::Memory,
        M::Inc | M::Dec => true,
        _ => false,
    };
    (moves && register.is_gpr64() && register != Register::RSP).then_some(register)
}

fn is_of_moving(one: &Instruction, moving: &Set, loaded: &Set) -> bool {
    let last = one.op_count().saturating_sub(1);
    let other = match one.mnemonic() {
        M::Mulx => Register::RDX,
        _ => Register::RAX,
    };
    let operand = match one.op_kind(last) {
        OpKind::Memory => is_through(one, moving),
        _ => has(loaded, one.op_register(last)),
    };
    operand || has(loaded, other)
}

/// Whether it reads memory through a register that moves on.
fn is_through(one: &Instruction, moving: &Set) -> bool {
    has(moving, one.memory_base()) || has(moving, one.memory_index())
}

fn note_loads(one: &Instruction, moving: &Set, loaded: &mut Set) {
    let to = one.op0_register();
    match one.mnemonic() {
        M::Mov if one.op0_kind() == OpKind::Register => {
            let from_moving = match one.op1_kind() {
                OpKind::Memory => is_through(one, moving),
                OpKind::Register => has(loaded, one.op1_register()),
                _ => false,
            };
            set(loaded, to, from_moving);
        }
        M::Mul => {
            set(loaded, Register::RAX, false);
            set(loaded, Register::RDX, false);
        }
        M::Mulx => {
            set(loaded, to, false);
            set(loaded, one.op1_register(), false);
        }
        M::Cmp | M::Test | M::Push => {}
        _ => set(loaded, to, false),
    }
}

fn has(set: &Set, register: Register) -> bool {
    place(register).and_then(|at| set.get(at)) == Some(&true)
}

fn set(set: &mut Set, register: Register, value: bool) {
    if let Some(one) = place(register).and_then(|at| set.get_mut(at)) {
        *one = value;
    }
}

fn place(register: Register) -> Option<usize> {
    register.is_gpr().then(|| register.full_register().number())
}
