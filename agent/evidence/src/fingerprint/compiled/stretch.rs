//! Signs in x86-64 code.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic as M, OpKind, Register};

use super::verdict::{CONSTANTS, ROTATIONS, SPLIT, Sign, SignAt};

/// The longest instruction.
const LONGEST: usize = 15;

/// Times five is mostly a shift by two bits, and the number itself added so soon after.
const SOON: u32 = 3;

/// Shifts to the right that show nothing: of addresses of objects, and of signs.
const PLAIN: [u32; 4] = [3, 31, 32, 63];

const LIMB_BITS: u32 = 26;
const LIMB: u64 = (1 << LIMB_BITS) - 1;

/// Signs in the code that surrounds `code[at]`, between what no code runs through.
pub(super) fn signs(code: &[u8], at: usize) -> Vec<SignAt> {
    let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let before = (0..LONGEST).find_map(|first| before(&mut decoder, first, at));
    let mut signs = before.unwrap_or_default();
    go_to(&mut decoder, at);
    let mut reader = Reader::default();
    while decoder.can_decode() {
        let position = decoder.position();
        let instruction = decoder.decode();
        if is_border(&instruction) {
            break;
        }
        signs.extend(reader.sign(&instruction).map(|sign| (position, sign)));
    }
    signs
}

/// Signs from the last border before `at` on; none if code that is decoded from `first` on does not
/// come to `at`. It begins anywhere, but soon falls into step.
fn before(decoder: &mut Decoder<'_>, first: usize, at: usize) -> Option<Vec<SignAt>> {
    go_to(decoder, first);
    let (mut reader, mut signs) = (Reader::default(), Vec::new());
    while decoder.position() < at {
        let position = decoder.position();
        let instruction = decoder.decode();
        if is_border(&instruction) {
            signs.clear();
            reader = Reader::default();
            go_to(decoder, position + 1);
        } else {
            signs.extend(reader.sign(&instruction).map(|sign| (position, sign)));
        }
    }
    (decoder.position() == at).then_some(signs)
}

/// Data, and what fills the gaps between functions.
fn is_border(instruction: &Instruction) -> bool {
    instruction.is_invalid() || matches!(instruction.mnemonic(), M::Hlt | M::Int3 | M::Ud2)
}

fn go_to(decoder: &mut Decoder<'_>, position: usize) {
    // A position behind the end leaves the decoder where it is: callers stay within.
    if decoder.set_position(position).is_ok() {
        decoder.set_ip(u64::try_from(position).unwrap_or_default());
    }
}

/// Looks for signs, one instruction after the other.
#[derive(Debug, Default)]
struct Reader {
    /// Register that was shifted to the left by two bits, and how many instructions ago.
    fourfold: Option<(Register, u32)>,
}

impl Reader {
    fn sign(&mut self, instruction: &Instruction) -> Option<Sign> {
        let target = instruction.op0_register();
        let wide = target.is_gpr64();
        let constant = constant(instruction);
        let bits = constant.and_then(|constant| u32::try_from(constant).ok());
        let is_fourfold = self.follow(instruction, wide && bits == Some(2));
        match instruction.mnemonic() {
            M::Rol | M::Ror | M::Rorx if target.is_gpr32() => {
                rotation(instruction.mnemonic(), bits?)
            }
            _ if constant.is_some_and(|constant| CONSTANTS.contains(&constant)) => {
                Some(Sign::Constant)
            }
            _ if !wide => None,
            M::Imul if constant.is_none() => Some(Sign::Product),
            M::Imul if bits == Some(5) => Some(Sign::FiveTimes),
            M::Lea if is_five_times(instruction) => Some(Sign::FiveTimes),
            M::Add if is_fourfold => Some(Sign::FiveTimes),
            M::Sar | M::Shr if bits == Some(LIMB_BITS) => Some(Sign::Carry),
            M::Sar => bits
                .filter(|bits| !PLAIN.contains(bits))
                .map(|_| Sign::Shift),
            M::Shr => bits.filter(|bits| SPLIT.contains(bits)).map(Sign::Split),
            M::And if constant == Some(LIMB) || constant == Some(!LIMB) => Some(Sign::Limb),
            _ => None,
        }
    }

    /// Whether the register of this instruction was shifted to the left by two bits shortly before.
    fn follow(&mut self, instruction: &Instruction, by_two: bool) -> bool {
        let target = instruction.op0_register();
        let fourfold = self.fourfold.take();
        if by_two && instruction.mnemonic() == M::Shl {
            self.fourfold = Some((target, 0));
            return false;
        }
        let is_same = fourfold.is_some_and(|(register, _)| register == target);
        let next = fourfold.map(|(register, ago)| (register, ago + 1));
        self.fourfold = next.filter(|&(_, ago)| ago < SOON && !is_same);
        is_same
    }
}

fn rotation(mnemonic: M, bits: u32) -> Option<Sign> {
    let left = match mnemonic {
        M::Rol => bits,
        _ => u32::BITS.checked_sub(bits)?,
    };
    ROTATIONS.contains(&left).then_some(Sign::Rotation(left))
}

/// `lea (%r, %r, 4)`.
fn is_five_times(lea: &Instruction) -> bool {
    lea.memory_base() == lea.memory_index()
        && lea.memory_index_scale() == 4
        && lea.memory_displacement64() == 0
        && lea.memory_base() != Register::None
}

/// The last operand, if it is a constant; with its sign. Shifts by one bit and by a register have none.
fn constant(instruction: &Instruction) -> Option<u64> {
    let last = instruction.op_count().checked_sub(1)?;
    (instruction.op_kind(last) != OpKind::Memory)
        .then(|| instruction.try_immediate(last).ok())
        .flatten()
}
