//! Decodes 32-bit words. Unknown ones become [`Operation::Other`].

use super::operation::{Access, Operation, Product, Register};
use crate::primitive::code::step::{Flow, Shift};
use tlsprof_common::aarch64::relative_address;

/// Decodes the word at an address.
pub(super) fn decode(word: u32, at: u64) -> Operation {
    match field(word, 25, 4) {
        _ if word == 0xd503_201f => Operation::Nothing,
        0b1000 | 0b1001 => immediate(word, at),
        0b1010 | 0b1011 => branch(word, at),
        0b0101 | 0b1101 => registers(word),
        0b0100 | 0b0110 | 0b1100 | 0b1110 => memory(word, at),
        // Unallocated encodings (Arm Architecture Reference Manual, C4.1).
        0b0001 | 0b0011 => Operation::Data,
        0b0000 if !bit(word, 31) => Operation::Data,
        _ => Operation::Other(None),
    }
}

fn field(word: u32, at: u32, bits: u32) -> u32 {
    (word >> at) & ((1 << bits) - 1)
}

fn bit(word: u32, at: u32) -> bool {
    field(word, at, 1) == 1
}

fn signed(word: u32, at: u32, bits: u32) -> i64 {
    let left = 32 - bits - at;
    i64::from((word << left).cast_signed() >> (32 - bits))
}

fn to(word: u32) -> Register {
    field(word, 0, 5)
}

fn from(word: u32) -> Register {
    field(word, 5, 5)
}

fn other(word: u32) -> Register {
    field(word, 16, 5)
}

fn immediate(word: u32, at: u64) -> Operation {
    let (to, from, is_long) = (to(word), from(word), bit(word, 31));
    match field(word, 23, 3) {
        0b000 | 0b001 => Operation::Address {
            to,
            address: relative_address(word, at),
            is_page: is_long,
        },
        0b010 => {
            let number = i64::from(field(word, 10, 12)) << (12 * field(word, 22, 1));
            Operation::AddNumber {
                to,
                from,
                number: if bit(word, 30) { -number } else { number },
                flags: bit(word, 29),
                is_long,
            }
        }
        0b100 => match (field(word, 29, 2), mask(word)) {
            (0b01, Some(mask)) if from == 31 => Operation::Set {
                to,
                number: number(mask, is_long),
            },
            (kind @ (0b00 | 0b11), Some(mask)) => Operation::And {
                to,
                mask,
                flags: kind == 0b11,
            },
            _ => Operation::Other(Some(to)),
        },
        0b101 => wide(word),
        0b110 => Operation::Cut {
            to,
            from,
            first: field(word, 16, 6),
            last: field(word, 10, 6),
            size: if is_long { 64 } else { 32 },
        },
        0b111 => Operation::Extract {
            to,
            by: field(word, 10, 6),
        },
        _ => Operation::Other(Some(to)),
    }
}

/// MOVN, MOVZ, MOVK.
fn wide(word: u32) -> Operation {
    let to = to(word);
    let (shift, bits) = (16 * field(word, 21, 2), u64::from(field(word, 5, 16)));
    let shifted = bits << shift;
    match field(word, 29, 2) {
        0b00 => Operation::Set {
            to,
            number: number(!shifted, bit(word, 31)),
        },
        0b10 => Operation::Set {
            to,
            number: number(shifted, bit(word, 31)),
        },
        0b11 => Operation::Insert {
            to,
            number: bits,
            shift,
        },
        _ => Operation::Other(Some(to)),
    }
}

/// Sign-extends a 64-bit or 32-bit value.
fn number(bits: u64, is_long: bool) -> i64 {
    let bits = bits.cast_signed();
    if is_long { bits } else { (bits << 32) >> 32 }
}

/// Immediate of a logical instruction (`DecodeBitMasks`): a run of ones, repeated in elements of 2 to 64 bits.
fn mask(word: u32) -> Option<u64> {
    let (long, rotation, ones) = (field(word, 22, 1), field(word, 16, 6), field(word, 10, 6));
    let size = ((long << 6) | (!ones & 0x3f)).checked_ilog2()?;
    let levels = (1_u32 << size) - 1;
    if size == 0 || ones & levels == levels {
        return None;
    }
    let run = (1_u64 << ((ones & levels) + 1)) - 1;
    let size = 1_u32 << size;
    let mut mask = (0..64 / size).fold(0, |all, at| all | (run << (at * size)));
    mask = mask.rotate_right(rotation & levels);
    Some(if bit(word, 31) {
        mask
    } else {
        mask & 0xffff_ffff
    })
}

fn branch(word: u32, at: u64) -> Operation {
    let target = |first, bits| at.wrapping_add_signed(4 * signed(word, first, bits));
    match field(word, 26, 6) {
        0b000101 => Operation::Flow(Flow::Jump(target(0, 26))),
        0b100101 => Operation::Flow(Flow::Call(Some(target(0, 26)))),
        0b010101 if !bit(word, 25) && !bit(word, 24) => Operation::Branch {
            target: target(5, 19),
            condition: field(word, 0, 4),
        },
        0b001101 | 0b101101 if bit(word, 25) => Operation::Flow(Flow::Branch(target(5, 14))),
        0b001101 | 0b101101 => Operation::BranchOnZero {
            target: target(5, 19),
            register: to(word),
        },
        0b110101 if bit(word, 25) => match field(word, 21, 3) {
            0b001 => Operation::Flow(Flow::Call(None)),
            0b010 => Operation::Flow(Flow::Return),
            _ => Operation::Flow(Flow::Elsewhere),
        },
        // SVC and BRK return; system instructions.
        _ => Operation::Other(Some(to(word))),
    }
}

/// Data processing with register operands.
fn registers(word: u32) -> Operation {
    let (to, from, other) = (to(word), from(word), other(word));
    let (is_long, flags) = (bit(word, 31), bit(word, 29));
    let kind = field(word, 21, 3);
    match (bit(word, 28), bit(word, 24)) {
        (false, false) => logic(word),
        (false, true) => Operation::Add {
            to,
            from,
            other,
            by: shift(word).filter(|_| !bit(word, 21)),
            subtracts: bit(word, 30),
            flags,
            is_long,
        },
        (true, false) => match kind {
            0b000 => Operation::AddCarry {
                to,
                from,
                other,
                flags,
                is_long,
            },
            0b010 | 0b100 => Operation::Select {
                to: (kind == 0b100).then_some(to),
                from,
                other,
                condition: field(word, 12, 4),
                is_increment: kind == 0b100 && !bit(word, 30) && field(word, 10, 2) == 0b01,
            },
            _ => Operation::Other(Some(to)),
        },
        // SMULH
        (true, true) if kind == 0b010 => Operation::Other(Some(to)),
        (true, true) => Operation::Multiply {
            to,
            from,
            other,
            product: match (kind, field(word, 10, 6)) {
                (0b000, _) if !is_long => Product::Short,
                (0b110, _) => Product::Upper,
                // Without an addend.
                (_, 31) => Product::Long,
                _ => Product::Sum,
            },
        },
    }
}

/// How the second register of an operation is shifted. None if it is rotated.
fn shift(word: u32) -> Option<Shift> {
    let amount = field(word, 10, 6);
    match field(word, 22, 2) {
        0b00 => Some(Shift::Left(amount)),
        0b11 => None,
        _ => Some(Shift::Right(amount)),
    }
}

/// AND, ORR, EOR, BIC, ORN, EON, ANDS, BICS.
fn logic(word: u32) -> Operation {
    let (kind, by) = (field(word, 29, 2), shift(word));
    // MOV is ORR with zero.
    let is_plain = by.is_none_or(|by| by.by() == 0);
    let copies = kind == 0b01 && !bit(word, 21) && from(word) == 31 && is_plain;
    Operation::Logic {
        to: to(word),
        by,
        copied: copies.then_some(other(word)),
        flags: kind == 0b11,
    }
}

fn memory(word: u32, at: u64) -> Operation {
    let is_vector = bit(word, 26);
    let general = |register| (!is_vector).then_some(register);
    let nothing = Access {
        registers: [general(to(word)), None],
        base: from(word),
        index: None,
        offset: 0,
        advances: false,
        is_store: false,
        is_word: false,
    };
    let size = field(word, 30, 2);
    match (field(word, 28, 2), bit(word, 24)) {
        (0b01, false) => Operation::Literal {
            to: general(to(word)),
            address: at.wrapping_add_signed(4 * signed(word, 5, 19)),
        },
        (0b10, _) => {
            let scale = match (is_vector, size) {
                (true, _) => 2 + size,
                (false, 0b10) => 3,
                (false, _) => 2,
            };
            Operation::Access(Access {
                registers: [general(to(word)), general(field(word, 10, 5))],
                offset: match is_late(word, 23) {
                    true => 0,
                    false => signed(word, 15, 7) << scale,
                },
                advances: bit(word, 23),
                is_store: !bit(word, 22),
                is_word: !is_vector && size == 0b10,
                ..nothing
            })
        }
        (0b11, is_scaled) => single(word, is_scaled, nothing),
        // LD1 to LD4, ST1 to ST4.
        _ if is_vector => Operation::Access(Access {
            advances: bit(word, 23),
            ..nothing
        }),
        _ => Operation::Other(Some(to(word))),
    }
}

/// Whether these two bits select post-indexing.
fn is_late(word: u32, at: u32) -> bool {
    field(word, at, 2) == 0b01
}

/// LDR and STR of one register.
fn single(word: u32, is_scaled: bool, nothing: Access) -> Operation {
    let (size, is_vector) = (field(word, 30, 2), bit(word, 26));
    let kind = field(word, 22, 2);
    let one = Access {
        is_store: kind == 0b00 || is_vector && kind == 0b10,
        is_word: !is_vector && size == 0b11 && kind < 0b10,
        ..nothing
    };
    let scale = if is_vector && kind >= 0b10 { 4 } else { size };
    let how = field(word, 10, 2);
    match (is_scaled, bit(word, 21)) {
        (true, _) => Operation::Access(Access {
            offset: i64::from(field(word, 10, 12)) << scale,
            ..one
        }),
        (false, false) => Operation::Access(Access {
            offset: match is_late(word, 10) {
                true => 0,
                false => signed(word, 12, 9),
            },
            advances: how & 1 == 1,
            ..one
        }),
        (false, true) if how == 0b10 => Operation::Access(Access {
            index: Some(other(word)),
            ..one
        }),
        // Atomic operations.
        _ => Operation::Other(Some(to(word))),
    }
}
