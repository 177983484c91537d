//! Marks in AArch64 code.
//!
//! All instructions are four bytes long and only some thirty of them mean anything here, so that
//! they are compared with their encodings (Arm Architecture Reference Manual, C4.1 and C7.2)
//! rather than decoded: a decoder would be thousands of lines of tables for the same answer.

use super::marks::{MAX_INSTRUCTIONS, Marks};

/// The stack pointer, where an instruction addresses memory.
const SP: u32 = 31;

/// Marks of the code that runs on to `code[at]`, and on from there.
pub(super) fn marks(code: &[u8], at: usize) -> Marks {
    let mut marks = Marks::default();
    let mut keys = Keys::default();
    let (before, after) = code.split_at(at.min(code.len()));
    for word in before.as_rchunks::<4>().1.iter().rev() {
        let word = u32::from_le_bytes(*word);
        if ends(word) || is_jump(word) {
            break;
        }
        note(&mut marks, &mut keys, word);
    }
    run_on(&mut marks, &mut keys, after.as_chunks::<4>().0);
    marks
}

/// Reads on until the code goes elsewhere. Jumps are followed forward within `code`, so that
/// this ends; those that depend on a condition are not taken.
fn run_on(marks: &mut Marks, keys: &mut Keys, code: &[[u8; 4]]) {
    let limit = marks.instructions + MAX_INSTRUCTIONS;
    let mut at = 0;
    while marks.instructions < limit
        && let Some(&word) = code.get(at)
    {
        let word = u32::from_le_bytes(word);
        if ends(word) {
            break;
        }
        if is_jump(word) {
            // A signed distance in instructions.
            let distance = word & 0x03ff_ffff;
            if distance == 0 || distance >= 0x0200_0000 {
                break;
            }
            marks.instructions += 1;
            at = at.saturating_add(usize::try_from(distance).unwrap_or(usize::MAX));
        } else {
            note(marks, keys, word);
            at += 1;
        }
    }
}

fn is(word: u32, mask: u32, value: u32) -> bool {
    word & mask == value
}

/// B.
fn is_jump(word: u32) -> bool {
    is(word, 0xfc00_0000, 0x1400_0000)
}

/// Calls, returns and jumps through registers; exceptions; what is no instruction.
fn ends(word: u32) -> bool {
    is(word, 0xfc00_0000, 0x9400_0000) // BL
        || is(word, 0xfe00_0000, 0xd600_0000) // BR, BLR, RET, ERET
        || is(word, 0xff00_0000, 0xd400_0000) // SVC, BRK, HLT
        || is(word, 0xffff_0000, 0) // UDF
}

fn note(marks: &mut Marks, keys: &mut Keys, word: u32) {
    marks.instructions += 1;
    let _ = aes(marks, keys, word)
        || cipher(marks, word)
        || rotation(marks, word)
        || shift(marks, word)
        || lanes(marks, word)
        || arithmetic(marks, word)
        || memory(marks, word);
}

/// The register of the last round key, by the register of the state.
type Keys = [Option<u32>; 32];

/// AESE and AESD, which make a round with AESMC or AESIMC. Hash functions for tables use one
/// key for all rounds: Go's runtime, for one.
fn aes(marks: &mut Marks, keys: &mut Keys, word: u32) -> bool {
    if !is(word, 0xffff_cc00, 0x4e28_4800) {
        return false;
    }
    if word & 0x2000 != 0 {
        return true; // AESMC, AESIMC
    }
    let (key, state) = (Some((word >> 5) & 0x1f), word & 0x1f);
    let mixes = usize::try_from(state)
        .ok()
        .and_then(|state| keys.get_mut(state))
        .is_some_and(|last| std::mem::replace(last, key) == key);
    match word & 0x1000 {
        _ if mixes => marks.aes_mixing += 1,
        0 => marks.aes_encrypting += 1,
        _ => marks.aes_decrypting += 1,
    }
    true
}

/// Other instructions that were made for cryptography.
fn cipher(marks: &mut Marks, word: u32) -> bool {
    if is(word, 0xffe0_fc00, 0x0ee0_e000) {
        marks.carry_less.low += 1; // PMULL .1q, .1d, .1d
    } else if is(word, 0xffe0_fc00, 0x4ee0_e000) {
        marks.carry_less.high += 1; // PMULL2 .1q, .2d, .2d
    } else if is(word, 0xffe0_8c00, 0x5e00_0000) || is(word, 0xffff_cc00, 0x5e28_0800) {
        marks.sha += 1; // SHA1C, SHA1P, SHA1M, SHA1SU0, SHA256H, ...; SHA1H, SHA1SU1, SHA256SU0
    } else if is(word, 0xffe0_f800, 0xce60_8000)
        || is(word, 0xffe0_fc00, 0xce60_8800)
        || is(word, 0xffff_fc00, 0xcec0_8000)
    {
        marks.sha += 1; // SHA512H, SHA512H2; SHA512SU1; SHA512SU0
    } else if is(word, 0x7fe0_e000, 0x1ac0_4000) {
        marks.crc += 1; // CRC32, CRC32C
    } else {
        return false;
    }
    true
}

/// ROR, which is EXTR of one register, and ROR of the second operand of logic.
fn rotation(marks: &mut Marks, word: u32) -> bool {
    let right = (word >> 10) & 0x3f;
    let extracts = is(word, 0x7fa0_0000, 0x1380_0000) && (word >> 5) & 0x1f == (word >> 16) & 0x1f;
    let with_logic = is(word, 0x1fc0_0000, 0x0ac0_0000);
    if !extracts && !with_logic {
        return false;
    }
    if is(word, 0x7fc0_0000, 0x4ac0_0000) {
        marks.xored += 1;
    }
    if word >> 31 == 1 {
        marks.rotated64.add(64 - right, 64);
    } else {
        marks.rotated32.add(32u32.wrapping_sub(right), 32);
    }
    true
}

/// Shifts of lanes by a constant; SRI and SLI insert what they shift.
fn shift(marks: &mut Marks, word: u32) -> bool {
    let amount = (word >> 16) & 0x7f;
    let left = is(word, 0x9f80_fc00, 0x0f00_5400); // SHL, SLI
    let right = is(word, 0xbf80_fc00, 0x2f00_0400) || is(word, 0xbf80_fc00, 0x2f00_4400); // USHR, SRI
    match amount {
        32..64 if left => marks.lanes_left32.add(amount - 32, 32),
        32..64 if right => marks.lanes_right32.add(64 - amount, 32),
        64.. if right => marks.lanes_right64.add(128 - amount, 64),
        _ => {}
    }
    if left || right {
        marks.lanes_computed += 1;
    }
    left || right
}

/// Arithmetic on the lanes of vectors.
fn lanes(marks: &mut Marks, word: u32) -> bool {
    let count = if is(word, 0xbfe0_fc00, 0x0ea0_8400) {
        &mut marks.lanes_added32 // ADD .4s
    } else if is(word, 0xffe0_fc00, 0x4ee0_8400) {
        &mut marks.lanes_added64 // ADD .2d
    } else if is(word, 0xbfe0_fc00, 0x2e20_1c00) || is(word, 0xffe0_8000, 0xce00_0000) {
        &mut marks.lanes_xored // EOR, EOR3
    } else if is(word, 0xbfe0_fc00, 0x2ea0_c000) || is(word, 0xbfc0_f400, 0x2f80_a000) {
        &mut marks.lanes_multiplied // UMULL .2d, by a vector or by one lane
    } else if is(word, 0xbfe0_fc00, 0x2ea0_8000) || is(word, 0xbfc0_f400, 0x2f80_2000) {
        // UMLAL .2d: the sum is in it.
        marks.lanes_added64 += 1;
        &mut marks.lanes_multiplied
    } else if is(word, 0xffe0_fc00, 0x6e00_4000)
        || is(word, 0xffff_fc00, 0x5e18_0400)
        || is(word, 0xffe0_fc00, 0x4ec0_6800)
    {
        &mut marks.halves_swapped // EXT by 8 bytes; MOV d, v.d[1]; TRN2 .2d
    } else {
        return false;
    };
    *count += 1;
    marks.lanes_computed += 1;
    true
}

/// Arithmetic on general registers.
fn arithmetic(marks: &mut Marks, word: u32) -> bool {
    if is(word, 0xffe0_fc00, 0x9bc0_7c00) {
        marks.multiplied += 1; // UMULH; MUL goes with it
    } else if is(word, 0x9fe0_fc00, 0x9a00_0000) {
        marks.carried += 1; // ADC, ADCS, SBC, SBCS of 64 bits
    } else if is(word, 0x7f20_0000, 0x0b00_0000) {
        marks.added += 1; // ADD
    } else if is(word, 0x7f20_0000, 0x4a00_0000) {
        marks.xored += 1; // EOR
    } else if is(word, 0xffff_fc00, 0x9240_0400) {
        marks.lowest_two += 1; // AND with 3
    } else if is(word, 0xffff_fc00, 0x927e_f400) {
        marks.but_two += 1; // AND with -4
    } else if is(word, 0xffff_fc00, 0xd342_fc00) || is(word, 0xffe0_fc00, 0x93c0_0800) {
        marks.shifted_two += 1; // LSR by 2, EXTR by 2
    } else {
        return false;
    }
    true
}

/// Loads and stores of vectors and of pairs of registers.
fn memory(marks: &mut Marks, word: u32) -> bool {
    let pair = is(word, 0xfe00_0000, 0xac00_0000) || is(word, 0xfe00_0000, 0xa800_0000); // Q, X
    let single =
        is(word, 0xffbf_ffff & 0xff80_0000, 0x3d80_0000) || is(word, 0xffa0_0000, 0x3c80_0000); // LDR, STR of Q
    let several = is(word, 0xbfbf_0000, 0x0c00_0000) || is(word, 0xbfa0_0000, 0x0c80_0000); // LD1, ST1
    if !pair && !single && !several {
        return false;
    }
    if (word >> 5) & 0x1f != SP {
        if word & 0x0040_0000 == 0 {
            marks.stores += 1;
        } else {
            marks.loads += 1;
        }
    }
    true
}
