//! What single x86-64 instructions show.

use iced_x86::{Instruction, MemorySize, Mnemonic as M, OpKind, Register};

use crate::fingerprint::marks::{Amounts, Marks};

/// The order of 32-bit lanes for `pshufd` that swaps halves.
const SWAP: u32 = 0x4e;

/// Adds what one instruction shows.
pub(super) fn note(marks: &mut Marks, instruction: &Instruction) {
    marks.instructions += 1;
    let known = cipher(marks, instruction)
        || rotation(marks, instruction)
        || lanes(marks, instruction)
        || arithmetic(marks, instruction)
        || memory(marks, instruction);
    if !known && is_vector(instruction.op0_register()) {
        marks.lanes_computed += 1;
    }
}

/// Instructions that were made for cryptography.
fn cipher(marks: &mut Marks, instruction: &Instruction) -> bool {
    match instruction.mnemonic() {
        M::Aesenc | M::Vaesenc if mixes(instruction) => marks.aes_mixing += 1,
        M::Aesdec | M::Vaesdec if mixes(instruction) => marks.aes_mixing += 1,
        M::Aesenc | M::Vaesenc => marks.aes_encrypting += 1,
        M::Aesdec | M::Vaesdec => marks.aes_decrypting += 1,
        M::Aesenclast | M::Vaesenclast | M::Aesdeclast | M::Vaesdeclast => marks.aes_last += 1,
        M::Aeskeygenassist | M::Vaeskeygenassist | M::Aesimc | M::Vaesimc => marks.aes += 1,
        M::Pclmulqdq | M::Vpclmulqdq => match instruction.immediate8() & 0x11 {
            0x00 => marks.carry_less.low += 1,
            0x11 => marks.carry_less.high += 1,
            _ => marks.carry_less.crossed += 1,
        },
        M::Crc32 => marks.crc += 1,
        M::Sha1rnds4 | M::Sha1nexte | M::Sha1msg1 | M::Sha1msg2 => marks.sha += 1,
        M::Sha256rnds2 | M::Sha256msg1 | M::Sha256msg2 => marks.sha += 1,
        M::Vsha512rnds2 | M::Vsha512msg1 | M::Vsha512msg2 => marks.sha += 1,
        _ => return false,
    }
    true
}

/// The round key of a cipher comes from its key schedule. Hash functions for tables use the
/// value itself, or a constant: Go's runtime, for one.
fn mixes(round: &Instruction) -> bool {
    let key = round.op_count().saturating_sub(1);
    let state = key.saturating_sub(1);
    if round.op_kind(key) == OpKind::Memory {
        return round.is_ip_rel_memory_operand();
    }
    round.op_register(key) == round.op_register(state)
}

fn rotation(marks: &mut Marks, instruction: &Instruction) -> bool {
    let Some(bits) = amount(instruction) else {
        return false;
    };
    let size = register_bits(instruction.op0_register());
    let left = match instruction.mnemonic() {
        M::Rol => bits,
        M::Ror | M::Rorx => size.wrapping_sub(bits),
        M::Shld if is_of_one(instruction) => bits,
        M::Shrd if is_of_one(instruction) => size.wrapping_sub(bits),
        _ => return false,
    };
    match size {
        32 => marks.rotated32.add(left, 32),
        64 => marks.rotated64.add(left, 64),
        _ => {}
    }
    true
}

/// Of a register and itself. A double shift of one register is a rotation.
fn is_of_one(instruction: &Instruction) -> bool {
    instruction.op0_register() == instruction.op1_register()
}

/// Arithmetic on the lanes of vectors.
fn lanes(marks: &mut Marks, instruction: &Instruction) -> bool {
    let amounts: Option<(&mut Amounts, u32)> = match instruction.mnemonic() {
        M::Pslld | M::Vpslld => Some((&mut marks.lanes_left32, 32)),
        M::Psrld | M::Vpsrld => Some((&mut marks.lanes_right32, 32)),
        M::Psrlq | M::Vpsrlq => Some((&mut marks.lanes_right64, 64)),
        M::Vprold => Some((&mut marks.lanes_rotated32, 32)),
        _ => None,
    };
    if let Some((amounts, width)) = amounts {
        if let Some(bits) = amount(instruction) {
            amounts.add(bits, width);
        }
        marks.lanes_computed += 1;
        return true;
    }
    let count = match instruction.mnemonic() {
        M::Paddd | M::Vpaddd => &mut marks.lanes_added32,
        M::Paddq | M::Vpaddq => &mut marks.lanes_added64,
        _ if is_laid_over(instruction) => &mut marks.laid_over,
        M::Pxor | M::Vpxor | M::Vpxord | M::Vpxorq | M::Xorps | M::Vxorps => &mut marks.lanes_xored,
        M::Vpternlogd | M::Vpternlogq => &mut marks.lanes_xored,
        M::Pmuludq | M::Vpmuludq => &mut marks.lanes_multiplied,
        M::Vpmadd52luq | M::Vpmadd52huq => &mut marks.lanes_multiplied52,
        M::Vpbroadcastq => &mut marks.lanes_broadcast,
        M::Valignq => &mut marks.lanes_carried,
        _ if swaps_halves(instruction) => &mut marks.halves_swapped,
        M::Punpckldq | M::Vpunpckldq | M::Punpckhdq | M::Vpunpckhdq => &mut marks.lanes_transposed,
        M::Punpcklqdq | M::Vpunpcklqdq | M::Punpckhqdq | M::Vpunpckhqdq => {
            &mut marks.lanes_transposed
        }
        M::Vshufi32x4 | M::Vperm2i128 => &mut marks.lanes_transposed,
        _ => return false,
    };
    *count += 1;
    marks.lanes_computed += 1;
    true
}

/// Exclusive or with data in memory, as a stream cipher does with its key stream.
fn is_laid_over(instruction: &Instruction) -> bool {
    let xor = matches!(
        instruction.mnemonic(),
        M::Pxor | M::Vpxor | M::Vpxord | M::Vpxorq
    );
    let data = instruction.memory_base() != Register::RSP;
    xor && data
        && instruction.memory_base() != Register::None
        && !instruction.is_ip_rel_memory_operand()
}

/// The high half of a vector is brought to where it can be added to the low half.
fn swaps_halves(instruction: &Instruction) -> bool {
    match instruction.mnemonic() {
        M::Pshufd | M::Vpshufd => amount(instruction) == Some(SWAP),
        M::Palignr => is_of_one(instruction) && amount(instruction) == Some(8),
        M::Punpckhqdq => is_of_one(instruction),
        M::Vpunpckhqdq => instruction.op1_register() == instruction.op2_register(),
        M::Vpalignr => {
            instruction.op1_register() == instruction.op2_register()
                && amount(instruction) == Some(8)
        }
        _ => false,
    }
}

/// Arithmetic on general registers.
fn arithmetic(marks: &mut Marks, instruction: &Instruction) -> bool {
    let size = operand_bits(instruction);
    match (instruction.mnemonic(), size) {
        (M::Mul | M::Mulx, 64) => marks.multiplied += 1,
        (M::Adc | M::Adcx | M::Adox, 64) => marks.carried += 1,
        // With itself it makes a mask of the carry, with a constant it counts.
        (M::Sbb, 64) if !is_of_one(instruction) && immediate(instruction).is_none() => {
            marks.carried += 1;
        }
        (M::And, _) if immediate(instruction) == Some(3) => marks.lowest_two += 1,
        (M::And | M::Mov, _) if immediate(instruction) == Some(!3) => marks.but_two += 1,
        (M::Shr | M::Shrd, 64) if amount(instruction) == Some(2) => marks.shifted_two += 1,
        (M::Add | M::Lea, _) => marks.added += 1,
        (M::Imul, 64) if immediate(instruction).is_none() => marks.multiplied_short += 1,
        (M::Xor, _) if !is_of_one(instruction) => marks.xored += 1,
        _ => return false,
    }
    true
}

/// Loads, stores and copies.
fn memory(marks: &mut Marks, instruction: &Instruction) -> bool {
    match instruction.mnemonic() {
        M::Movsb | M::Movsw | M::Movsd | M::Movsq if instruction.has_rep_prefix() => {
            marks.copies = true;
            true
        }
        mnemonic if is_move(mnemonic) => {
            let own = instruction.memory_base() == Register::RSP
                || instruction.is_ip_rel_memory_operand();
            if instruction.memory_size().size() >= MemorySize::UInt128.size() && !own {
                if instruction.op0_kind() == OpKind::Memory {
                    marks.stores += 1;
                } else {
                    marks.loads += 1;
                }
            }
            true
        }
        _ => false,
    }
}

fn is_move(mnemonic: M) -> bool {
    let legacy = matches!(
        mnemonic,
        M::Movups | M::Movaps | M::Movdqu | M::Movdqa | M::Movntdq | M::Movntps | M::Lddqu
    );
    let vex = matches!(
        mnemonic,
        M::Vmovups | M::Vmovaps | M::Vmovdqu | M::Vmovdqa | M::Vmovntdq | M::Vmovntps
    );
    let evex = matches!(
        mnemonic,
        M::Vmovdqu8 | M::Vmovdqu16 | M::Vmovdqu32 | M::Vmovdqu64 | M::Vmovdqa32 | M::Vmovdqa64
    );
    legacy || vex || evex
}

/// The last operand, if it is a constant; with its sign.
fn immediate(instruction: &Instruction) -> Option<u64> {
    let last = instruction.op_count().checked_sub(1)?;
    instruction.try_immediate(last).ok()
}

fn amount(instruction: &Instruction) -> Option<u32> {
    u32::try_from(immediate(instruction)?).ok()
}

/// Width of the first operand, a register or memory.
fn operand_bits(instruction: &Instruction) -> u32 {
    if instruction.op_count() > 0 && instruction.op0_kind() == OpKind::Memory {
        let bytes = u32::try_from(instruction.memory_size().size());
        return bytes.unwrap_or_default().saturating_mul(8);
    }
    register_bits(instruction.op0_register())
}

fn register_bits(register: Register) -> u32 {
    let bytes = u32::try_from(register.size());
    bytes.unwrap_or_default().saturating_mul(8)
}

fn is_vector(register: Register) -> bool {
    register.is_vector_register()
}
