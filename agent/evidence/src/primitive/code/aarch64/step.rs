//! Effects of an instruction on registers, memory and the carry flag.

use super::operation::{Access, CARRY, Operation, Product, Register};
use crate::primitive::code::step::{Does, Flow, Registers, Step};

pub(super) fn step(one: &Operation, address: u64) -> Step {
    let step = Step {
        address,
        flow: flow(one),
        does: does(one),
        reads_carry: one.reads_carry(),
        writes_carry: one.writes_carry(),
        // TBZ and TBNZ ask for a bit of a register.
        sets_condition: one.writes_carry()
            || matches!(
                one,
                Operation::Flow(Flow::Branch(_)) | Operation::BranchOnZero { .. }
            ),
        ..Step::default()
    };
    match *one {
        Operation::Data
        | Operation::Nothing
        | Operation::Flow(_)
        | Operation::Branch { .. }
        | Operation::BranchOnZero { .. } => step,
        Operation::Access(access) => accesses(&access, step),
        Operation::AddNumber { .. } => adds_number(one, step),
        Operation::Logic {
            to,
            copied: Some(from),
            ..
        } => Step {
            copies: mask(to),
            from: mask(from),
            ..step
        },
        Operation::Set { to, .. } | Operation::Insert { to, .. } => Step {
            copies: mask(to),
            ..step
        },
        Operation::Select { to, .. } | Operation::Literal { to, .. } | Operation::Other(to) => {
            Step {
                changes: to.map_or(0, mask),
                ..step
            }
        }
        Operation::Address { to, .. }
        | Operation::And { to, .. }
        | Operation::Cut { to, .. }
        | Operation::Extract { to, .. }
        | Operation::Add { to, .. }
        | Operation::Logic { to, .. }
        | Operation::AddCarry { to, .. }
        | Operation::Multiply { to, .. } => Step {
            changes: mask(to),
            ..step
        },
    }
}

pub(super) const fn flow(one: &Operation) -> Flow {
    match *one {
        Operation::Flow(flow) => flow,
        Operation::Branch { target, .. } | Operation::BranchOnZero { target, .. } => {
            Flow::Branch(target)
        }
        Operation::Nothing => Flow::Pad,
        _ => Flow::Next,
    }
}

/// Register that it compares with zero.
pub(super) const fn compared_with_zero(one: &Operation) -> Option<Register> {
    match *one {
        Operation::BranchOnZero { register, .. } => Some(register),
        Operation::AddNumber {
            to: 31,
            from,
            number: 0,
            flags: true,
            ..
        } => Some(from),
        _ => None,
    }
}

fn adds_number(one: &Operation, step: Step) -> Step {
    let Operation::AddNumber {
        to,
        from,
        number,
        flags,
        is_long,
    } = *one
    else {
        return step;
    };
    let advances = mask(to) & if is_long { mask(from) } else { 0 };
    Step {
        advances,
        counts: if number > 0 { advances } else { 0 },
        // CMP of a number is SUBS of it.
        limits: if flags && number < 0 { mask(from) } else { 0 },
        changes: mask(to),
        ..step
    }
}

fn accesses(access: &Access, step: Step) -> Step {
    let registers = access.registers.into_iter().flatten();
    let registers = registers.fold(0, |all, one| all | mask(one));
    let step = Step {
        advances: if access.advances {
            mask(access.base)
        } else {
            0
        },
        through: mask(access.base) | access.index.map_or(0, mask),
        is_word: access.is_word,
        stores: access.is_store,
        ..step
    };
    match (access.is_store, access.is_word) {
        (true, _) => Step {
            stored: registers,
            ..step
        },
        (false, true) => Step {
            loads: registers,
            ..step
        },
        (false, false) => Step {
            changes: registers,
            ..step
        },
    }
}

fn does(one: &Operation) -> Does {
    match *one {
        Operation::Multiply {
            from,
            other,
            product: Product::Upper,
            ..
        } => Does::Multiply(mask(from) | mask(other)),
        Operation::Add {
            to,
            from,
            other,
            flags: true,
            is_long: true,
            ..
        } => sum(to, (from, other), false),
        Operation::AddCarry {
            from: 31,
            flags: false,
            ..
        }
        | Operation::AddCarry {
            other: 31,
            flags: false,
            ..
        } => Does::KeepCarry,
        Operation::AddCarry {
            to,
            from,
            other,
            is_long: true,
            ..
        } => sum(to, (from, other), true),
        Operation::Select {
            condition,
            is_increment: true,
            ..
        } if CARRY.contains(&condition) => Does::KeepCarry,
        _ => Does::Other,
    }
}

fn sum(to: Register, (from, other): (Register, Register), with_carry: bool) -> Does {
    Does::Sum {
        to: mask(to),
        of: mask(from) | mask(other),
        with_carry,
    }
}

/// Empty for the zero register and the stack pointer.
fn mask(register: Register) -> Registers {
    match register {
        0..31 => 1 << register,
        _ => 0,
    }
}
