//! What the instructions of a function show, on x86-64.

use std::collections::BTreeMap;

use iced_x86::{
    Code as Encoding, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic as M, OpKind,
    Register,
};

use super::factors::{Factors, is_wide};

/// Most instructions of a function that are looked at.
const MAX_INSTRUCTIONS: usize = 8192;
/// Most places in memory that are looked at for constants.
const MAX_REFERENCES: usize = 256;

/// Most calls of a function that are followed.
const MAX_CALLS: usize = 32;

/// ML-KEM's prime (FIPS 203, 2.4), and the factors by which libraries reduce modulo it: Barrett's of 24
/// and 26 bits, and Montgomery's; its other form, -3327, is too near to be a proof.
const ML_KEM_PRIME: i64 = 3329;
const MINUS_ML_KEM_PRIME: i64 = -ML_KEM_PRIME;
const ML_KEM_FACTORS: [i64; 3] = [5039, 20159, 62209];
/// (486662 + 2) / 4 of RFC 7748, 4.1, or one less.
const CURVE25519_FACTORS: [i64; 2] = [121_666, 121_665];

const MASK_58: i64 = (1 << 58) - 1;

/// By base register, the first and the last place.
type Operands = BTreeMap<u32, (i64, i64)>;

/// What was seen in a function.
#[derive(Debug, Default)]
pub(super) struct Signs {
    pub(crate) instructions: Vec<Instruction>,
    /// Additions with carry.
    pub(crate) carried: usize,
    /// Multiplications of 64 by 64 bits to 128.
    pub(crate) wide: usize,
    /// The same to 64 bits.
    pub(crate) short: usize,
    /// Multiplications by 19, the number by which 2^255 wraps around in Curve25519.
    pub(crate) by_19: usize,
    /// Registers that were set to 9 times another one: the first half of such a multiplication, without one.
    nine_times: BTreeMap<Register, Register>,
    /// Wide multiplications by constants, and where these are kept.
    pub(crate) factors: Factors,
    /// Multiplications by 38, the number by which 2^256 does, but for wide ones.
    pub(crate) by_38: usize,
    /// Its other constant.
    pub(crate) curve_factor: usize,
    pub(crate) ml_kem_prime: usize,
    pub(crate) ml_kem_factor: usize,
    /// Shifts by 25 and by 26 bits: limbs of 25.5 bits.
    pub(crate) by_25: usize,
    pub(crate) by_26: usize,
    /// Limbs of 28 and of 29 bits, cut to their length.
    pub(crate) of_28: usize,
    pub(crate) of_29: usize,
    /// Carries out of limbs of 51 bits.
    pub(crate) by_51: usize,
    /// Shifts right by 58 bits, and the mask of so many.
    pub(crate) by_58: usize,
    pub(crate) mask_58: usize,
    /// 64 bits brought to all lanes.
    pub(crate) broadcast: usize,
    /// By base register: the first and the last place from which multiplications of 52 bits, and those of 32
    /// bits in lanes, take operands.
    pub(crate) operands_52: Operands,
    pub(crate) operands_32: Operands,
    /// Comparisons and masks of lanes: how an entry of a table is taken without showing which.
    pub(crate) compared: usize,
    pub(crate) masked: usize,
    /// Places in memory.
    pub(crate) references: Vec<u64>,
    /// Where jumps lead out of it.
    pub(crate) leaves: Vec<u64>,
    /// With the number 38 in a register.
    pub(crate) leaves_with_38: bool,
    /// Functions that it calls by their address.
    pub calls: Vec<u64>,
}

impl Signs {
    /// Those of code at an address.
    pub(super) fn of(code: &[u8], address: u64) -> Self {
        let mut signs = Self::default();
        let end = address.saturating_add(code.len() as u64);
        let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
        while decoder.can_decode() && signs.instructions.len() < MAX_INSTRUCTIONS {
            let one = decoder.decode();
            if one.is_invalid() {
                continue;
            }
            signs.note(&one);
            if signs.leaves.len() < MAX_CALLS
                && one.flow_control() == FlowControl::UnconditionalBranch
                && one.op0_kind() == OpKind::NearBranch64
                && !(address..end).contains(&one.near_branch_target())
            {
                signs.leaves.push(one.near_branch_target());
                signs.leaves_with_38 |= signs.factors.keep(38);
            }
            if one.flow_control() == FlowControl::Call && signs.calls.len() < MAX_CALLS {
                signs.calls.push(one.near_branch_target());
            }
            _ = signs.factors.note(&one);
            signs.instructions.push(one);
        }
        signs
    }

    fn note(&mut self, one: &Instruction) {
        self.wide += usize::from(is_wide(one));
        self.short += usize::from(is_short(one));
        if one.is_ip_rel_memory_operand() && self.references.len() < MAX_REFERENCES {
            self.references.push(one.memory_displacement64());
        }
        match one.mnemonic() {
            M::Adc | M::Adcx | M::Adox => self.carried += 1,
            M::Vpbroadcastq => self.broadcast += 1,
            M::Vpmadd52luq => note_word(&mut self.operands_52, one),
            M::Vpmuludq => note_word(&mut self.operands_32, one),
            M::Pcmpeqd => self.compared += 1,
            M::Pand => self.masked += 1,
            M::And => match constant(one) {
                // All ones or nothing: the last carry.
                Some(38) => self.by_38 += 1,
                Some(0x0fff_ffff) => self.of_28 += 1,
                Some(0x1fff_ffff) => self.of_29 += 1,
                _ => {}
            },
            M::Sar | M::Shr | M::Shl | M::Shrd | M::Shld => match constant(one) {
                Some(25) => self.by_25 += 1,
                Some(26) => self.by_26 += 1,
                Some(51) if one.mnemonic() != M::Shl => self.by_51 += 1,
                Some(13) if one.mnemonic() == M::Shld => self.by_51 += 1,
                Some(58) if one.mnemonic() != M::Shl => self.by_58 += 1,
                _ => {}
            },
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
            self.by_19 += 1;
        }
    }

    fn note_number(&mut self, one: &Instruction) {
        let Some(number) = constant(one) else {
            return;
        };
        match number {
            19 if one.mnemonic() == M::Imul => self.by_19 += 1,
            38 if one.mnemonic() == M::Imul => self.by_38 += 1,
            _ if CURVE25519_FACTORS.contains(&number) => self.curve_factor += 1,
            MASK_58 => self.mask_58 += 1,
            ML_KEM_PRIME | MINUS_ML_KEM_PRIME => self.ml_kem_prime += 1,
            _ if ML_KEM_FACTORS.contains(&number) && one.mnemonic() == M::Imul => {
                self.ml_kem_factor += 1;
            }
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
