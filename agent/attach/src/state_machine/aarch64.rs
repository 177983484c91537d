//! What a function of AArch64 code returns, if that is a constant address.
//!
//! Encodings: Arm Architecture Reference Manual (DDI 0487), C4.1 and C6.2.

use tlsprof_common::aarch64::relative_address;

/// An instruction's first eleven bits and its registers x0, and what these bits are.
const ADD_X0_X0: (u32, u32) = (0xff80_03ff, 0x9100_0000);
const ADR_X0: (u32, u32) = (0x9f00_001f, 0x1000_0000);
const ADRP_X0: (u32, u32) = (0x9f00_001f, 0x9000_0000);
const RET: u32 = 0xd65f_03c0;
/// `nop`, `bti c`, `bti jc`: landing pads, and what linkers leave of instructions.
const HINTS: [u32; 3] = [0xd503_201f, 0xd503_245f, 0xd503_24df];

/// The constant address that a function returns, when it does nothing else: `adrp x0, page` or
/// `adr x0, place`, then additions to it, then `ret`.
pub(super) fn returned_address(code: &[u8], address: u64) -> Option<u64> {
    let (words, _) = code.as_chunks::<4>();
    let mut value = None;
    for (word, place) in words.iter().zip((address..).step_by(4)) {
        let word = u32::from_le_bytes(*word);
        value = match (value, word) {
            (_, hint) if HINTS.contains(&hint) => value,
            (Some(_), RET) => return value,
            (None, adr) if is(adr, ADR_X0) || is(adr, ADRP_X0) => {
                Some(relative_address(adr, place))
            }
            (Some(base), add) if is(add, ADD_X0_X0) => Some(base.wrapping_add(addend(add))),
            _ => return None,
        };
    }
    None
}

fn is(word: u32, (mask, bits): (u32, u32)) -> bool {
    word & mask == bits
}

/// Of `add`: 12 bits, shifted by 12 if bit 22 is set.
fn addend(word: u32) -> u64 {
    let bits = u64::from(word >> 10) & 0xfff;
    if word & (1 << 22) == 0 {
        bits
    } else {
        bits << 12
    }
}
