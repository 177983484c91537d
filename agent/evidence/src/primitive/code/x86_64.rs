//! What the instructions of a function show, on x86-64.

use std::collections::BTreeMap;

use iced_x86::{
    Code as Encoding, Decoder, DecoderOptions, FlowControl, Instruction, MemorySize, Mnemonic as M,
    OpKind, Register, RflagsBits,
};

use super::signs::{MAX_INSTRUCTIONS, Operands, Signs};
use super::step::{Does, Flow, Registers, Shift, Step};

const MASK_56: i64 = (1 << 56) - 1;
const MASK_58: i64 = (1 << 58) - 1;

/// Reads code at an address.
pub(super) fn signs(code: &[u8], address: u64) -> Signs {
    let mut reader = Reader::default();
    let end = address.saturating_add(code.len() as u64);
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    while decoder.can_decode() {
        let one = decoder.decode();
        if one.is_invalid() {
            continue;
        }
        reader.note(&one);
        if !reader.signs.take(step(&one), (address, end)) {
            break;
        }
    }
    reader.signs.end = decoder.ip();
    reader.signs
}

/// Addresses of instructions, and where they lead.
pub(super) fn flows(code: &[u8], address: u64) -> impl Iterator<Item = (u64, Flow)> {
    let decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let valid = decoder.into_iter().filter(|one| !one.is_invalid());
    valid
        .take(MAX_INSTRUCTIONS)
        .map(|one| (one.ip(), flow(&one)))
}

#[derive(Default)]
struct Reader {
    signs: Signs,
    /// Registers that were set to 9 times another one: the first half of a multiplication by 19, without one.
    nine_times: BTreeMap<Register, Register>,
}

impl Reader {
    fn note(&mut self, one: &Instruction) {
        let signs = &mut self.signs;
        signs.short += usize::from(is_short(one));
        if one.is_ip_rel_memory_operand() {
            signs.note_reference(one.memory_displacement64());
        }
        match one.mnemonic() {
            M::Adc | M::Adcx | M::Adox => signs.carried += 1,
            M::Vpbroadcastq => signs.broadcast += 1,
            M::Vpmadd52luq => note_word(&mut signs.operands_52, one),
            M::Vpmuludq => note_word(&mut signs.operands_32, one),
            M::Pcmpeqd => signs.compared += 1,
            M::Pand => signs.masked += 1,
            M::And => match constant(one) {
                // All ones or nothing: the last carry.
                Some(38) => signs.note_factor(38),
                Some(0x0fff_ffff) => signs.note_cut(28),
                Some(0x1fff_ffff) => signs.note_cut(29),
                _ => {}
            },
            M::Sar | M::Shr | M::Shl | M::Shrd | M::Shld => {
                shift(one).into_iter().for_each(|by| signs.note_shift(by));
            }
            M::Imul | M::Mov | M::Add | M::Sub | M::Cmp => self.note_number(one),
            M::Lea => {
                self.note_number(one);
                self.note_sum(one);
            }
            _ => {}
        }
    }

    /// a + 8a = 9a; a + 2 * 9a = 19a.
    fn note_sum(&mut self, one: &Instruction) {
        let (base, index) = (one.memory_base(), one.memory_index());
        if one.memory_displacement64() != 0 {
            return;
        }
        if base == index && one.memory_index_scale() == 8 {
            self.nine_times
                .insert(one.op0_register().full_register(), base);
        } else if one.memory_index_scale() == 2 && self.nine_times.get(&index) == Some(&base) {
            self.signs.by_19 += 1;
        }
    }

    fn note_number(&mut self, one: &Instruction) {
        let Some(number) = constant(one) else {
            return;
        };
        self.signs.note_number(number);
        if one.mnemonic() == M::Imul {
            self.signs.note_factor(number);
        }
        // Masks of more than 32 bits are no operand of AND.
        match number {
            MASK_56 => self.signs.note_cut(56),
            MASK_58 => self.signs.note_cut(58),
            _ => {}
        }
    }
}

fn note_word(operands: &mut Operands, one: &Instruction) {
    // Constants, and numbers on the stack that registers have no room for, are not words of one number.
    let is_number = one.memory_base().is_gpr64() && one.memory_base() != Register::RSP;
    let last = one.op_count().saturating_sub(1);
    if one.op_kind(last) != OpKind::Memory || one.memory_index() != Register::None || !is_number {
        return;
    }
    let at = one.memory_displacement64().cast_signed();
    let (first, last) = operands.entry(one.memory_base() as u32).or_insert((at, at));
    (*first, *last) = ((*first).min(at), (*last).max(at));
}

/// Multiplies 64 by 64 bits to 128.
fn is_wide(one: &Instruction) -> bool {
    matches!(
        one.code(),
        Encoding::Mul_rm64 | Encoding::VEX_Mulx_r64_r64_rm64
    )
}

fn is_short(one: &Instruction) -> bool {
    matches!(
        one.code(),
        Encoding::Imul_r64_rm64 | Encoding::Imul_r64_rm64_imm8 | Encoding::Imul_r64_rm64_imm32
    )
}

/// The last operand, if it is a number; of an address that is added to, what is added.
fn constant(one: &Instruction) -> Option<i64> {
    if one.mnemonic() == M::Lea {
        let relative = !one.is_ip_rel_memory_operand();
        return relative.then(|| one.memory_displacement64().cast_signed());
    }
    let last = one.op_count().checked_sub(1)?;
    let number = one.try_immediate(last).ok()?.cast_signed();
    // 32-bit operands have no sign of their own.
    Some(match one.op0_register().size() {
        4 => (number << 32) >> 32,
        2 => (number << 48) >> 48,
        _ => number,
    })
}

fn shift(one: &Instruction) -> Option<Shift> {
    let by = u32::try_from(constant(one)?).ok()?;
    match one.mnemonic() {
        M::Shl => Some(Shift::Left(by)),
        M::Shrd => Some(Shift::Double(by)),
        M::Shld => {
            let bits = 8 * u32::try_from(one.op1_register().size()).ok()?;
            bits.checked_sub(by).map(Shift::Double)
        }
        _ => Some(Shift::Right(by)),
    }
}

/// A number for the whole register: 32 bits are extended with zeros.
fn immediate(one: &Instruction) -> Option<u64> {
    let value = one.try_immediate(1).ok()?;
    match one.op0_register().size() {
        8 => Some(value),
        4 => Some(value & u64::from(u32::MAX)),
        _ => None,
    }
}

fn step(one: &Instruction) -> Step {
    let (to, from) = (one.op0_register(), one.op1_register());
    let through = mask(one.memory_base()) | mask(one.memory_index());
    let of_memory = [one.op0_kind(), one.op1_kind()].map(|kind| kind == OpKind::Memory);
    let (read, modified) = (one.rflags_read(), one.rflags_modified());
    let mut step = Step {
        address: one.ip(),
        flow: flow(one),
        does: does(one),
        advances: advanced(one),
        counts: if adds_constant(one) { advanced(one) } else { 0 },
        limits: match one.mnemonic() {
            M::Cmp if one.try_immediate(1).is_ok_and(|to| to.cast_signed() > 0) => mask(to),
            _ => 0,
        },
        asks: match one.mnemonic() {
            M::Test if to.full_register() == from.full_register() => mask(to),
            _ => 0,
        },
        through,
        is_word: one.memory_size() == MemorySize::UInt64,
        reads_carry: read & RflagsBits::CF != 0,
        writes_carry: modified & RflagsBits::CF != 0,
        sets_condition: modified != RflagsBits::NONE,
        asks_for_overflow: read & RflagsBits::OF != 0 && one.mnemonic() != M::Adox,
        ..Step::default()
    };
    match (one.mnemonic(), of_memory) {
        (M::Mov, [true, _]) => (step.stores, step.stored) = (true, mask(from)),
        (M::Mov, [false, true]) => step.loads = mask(to),
        (M::Mov, _) => {
            (step.copies, step.from) = (mask(to), mask(from));
            step.number = immediate(one);
        }
        (M::Mul, _) => step.changes = mask(Register::RAX) | mask(Register::RDX),
        (M::Mulx, _) => step.changes = mask(to) | mask(from),
        (M::Cmp | M::Test | M::Push, _) => {}
        (mnemonic, [in_memory, _]) => {
            step.changes = mask(to);
            step.stores = in_memory && matches!(mnemonic, M::Adc | M::Sbb);
        }
    }
    step
}

fn flow(one: &Instruction) -> Flow {
    let is_near = one.op0_kind() == OpKind::NearBranch64;
    let target = one.near_branch_target();
    match one.flow_control() {
        _ if one.mnemonic() == M::Int3 => Flow::Trap,
        FlowControl::Next if one.mnemonic() == M::Nop => Flow::Pad,
        FlowControl::Next => Flow::Next,
        FlowControl::ConditionalBranch => Flow::Branch(target),
        FlowControl::UnconditionalBranch if is_near => Flow::Jump(target),
        FlowControl::Call => Flow::Call(is_near.then_some(target)),
        FlowControl::Return => Flow::Return,
        _ => Flow::Elsewhere,
    }
}

fn does(one: &Instruction) -> Does {
    let [to, from] = [one.op0_kind(), one.op1_kind()];
    let with_carry = matches!(one.mnemonic(), M::Adc | M::Sbb);
    match one.mnemonic() {
        _ if is_wide(one) => {
            let last = one.op_register(one.op_count().saturating_sub(1));
            let other = match one.mnemonic() {
                M::Mulx => Register::RDX,
                _ => Register::RAX,
            };
            Does::Multiply(mask(last) | mask(other))
        }
        // Of other sums no word comes from memory at once.
        M::Add | M::Sub if to != OpKind::Register || from != OpKind::Memory => Does::Other,
        M::Add | M::Sub | M::Adc | M::Sbb => Does::Sum {
            to: mask(one.op0_register()),
            of: 0,
            with_carry,
        },
        M::Setb | M::Setae => Does::KeepCarry,
        _ => Does::Other,
    }
}

/// The register that an instruction moves on by a constant.
fn advanced(one: &Instruction) -> Registers {
    let register = one.op0_register();
    let moves = match one.mnemonic() {
        M::Lea => one.memory_base() == register && one.memory_index() == Register::None,
        M::Add | M::Sub => one.op1_kind() != OpKind::Register && one.op1_kind() != OpKind::Memory,
        M::Inc | M::Dec => true,
        _ => false,
    };
    match moves && register.is_gpr64() && register != Register::RSP {
        true => mask(register),
        false => 0,
    }
}

fn adds_constant(one: &Instruction) -> bool {
    match one.mnemonic() {
        M::Add => one.try_immediate(1).is_ok_and(|by| by.cast_signed() > 0),
        M::Lea => one.memory_displacement64().cast_signed() > 0,
        M::Inc => true,
        _ => false,
    }
}

fn mask(register: Register) -> Registers {
    match register.is_gpr() {
        true => 1 << register.full_register().number(),
        false => 0,
    }
}
