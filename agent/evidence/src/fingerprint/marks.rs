//! What was seen in a stretch of code, in words that both machines share.

/// Most instructions that are looked at from the sampled one on.
pub(super) const MAX_INSTRUCTIONS: u16 = 64;

/// How often shifts or rotations by each number of bits were seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amounts([u8; 64]);

impl Default for Amounts {
    fn default() -> Self {
        Self([0; 64])
    }
}

impl Amounts {
    /// Counts one by `bits`, modulo the width of the operand.
    pub(super) fn add(&mut self, bits: u32, width: u32) {
        let bits = bits.checked_rem(width).unwrap_or_default();
        let bits = usize::try_from(bits).unwrap_or_default();
        if let Some(count) = self.0.get_mut(bits) {
            *count = count.saturating_add(1);
        }
    }

    /// How many there were by any of `amounts`.
    pub(super) fn count(&self, amounts: &[usize]) -> u16 {
        let counts = amounts.iter().filter_map(|&bits| self.0.get(bits));
        counts.map(|&count| u16::from(count)).sum()
    }

    /// How many of `amounts` there were at all.
    pub(super) fn distinct(&self, amounts: &[usize]) -> usize {
        let counts = amounts.iter().filter_map(|&bits| self.0.get(bits));
        counts.filter(|&&count| count > 0).count()
    }
}

/// Carry-less multiplications, by which halves of the operands they multiply.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CarryLess {
    /// The low halves.
    pub low: u16,
    /// The high halves.
    pub high: u16,
    /// A low half and a high half.
    pub(crate) crossed: u16,
}

impl CarryLess {
    pub(super) fn all(self) -> u16 {
        self.low + self.high + self.crossed
    }
}

/// Instructions seen, by what they may show.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    /// All of them.
    pub(crate) instructions: u16,
    /// Steps of the AES key expansion.
    pub(crate) aes: u16,
    /// AES rounds that mix a value with itself or with a constant, as hash tables do.
    pub(crate) aes_mixing: u16,
    /// AES rounds of encryption, but for the last.
    pub(crate) aes_encrypting: u16,
    /// AES rounds of decryption, but for the last.
    pub(crate) aes_decrypting: u16,
    /// Last AES rounds, which are different ones.
    pub(crate) aes_last: u16,
    /// Carry-less multiplication.
    pub(crate) carry_less: CarryLess,
    /// The halves of 128 bits change places.
    pub(crate) halves_swapped: u16,
    /// CRC instructions.
    pub(crate) crc: u16,
    /// SHA-1 and SHA-2 instructions.
    pub(crate) sha: u16,
    /// Rotations to the left of 32-bit registers.
    pub(crate) rotated32: Amounts,
    /// Rotations to the left of 64-bit registers.
    pub(crate) rotated64: Amounts,
    /// Rotations to the left of 32-bit lanes by one instruction.
    pub(crate) lanes_rotated32: Amounts,
    /// Shifts of 32-bit lanes.
    pub(crate) lanes_left32: Amounts,
    /// Shifts of 32-bit lanes.
    pub(crate) lanes_right32: Amounts,
    /// Shifts of 64-bit lanes to the right.
    pub(crate) lanes_right64: Amounts,
    /// Additions of registers.
    pub(crate) added: u16,
    /// Exclusive or of registers.
    pub(crate) xored: u16,
    /// Additions of 32-bit lanes.
    pub(crate) lanes_added32: u16,
    /// Additions of 64-bit lanes.
    pub(crate) lanes_added64: u16,
    /// Exclusive or of vectors.
    pub(crate) lanes_xored: u16,
    /// Exclusive or of vectors with data in memory.
    pub(crate) laid_over: u16,
    /// Lanes of 32 bits and more put in another order, as for transposing a matrix.
    pub(crate) lanes_transposed: u16,
    /// Multiplications of 32-bit lanes to 64 bits.
    pub(crate) lanes_multiplied: u16,
    /// Multiplications of 52-bit lanes, added up.
    pub(crate) lanes_multiplied52: u16,
    /// 64 bits of memory brought to all lanes.
    pub(crate) lanes_broadcast: u16,
    /// Lanes moved on from one vector to the next.
    pub(crate) lanes_carried: u16,
    /// Multiplications of 64-bit registers to 128 bits; two instructions on AArch64,
    /// of which one counts.
    pub(crate) multiplied: u16,
    /// Multiplications of 64-bit registers to 64 bits.
    pub(crate) multiplied_short: u16,
    /// Additions and subtractions of 64-bit registers with carry.
    pub(crate) carried: u16,
    /// The lowest two bits are taken.
    pub(crate) lowest_two: u16,
    /// The lowest two bits are taken off.
    pub(crate) but_two: u16,
    /// 64-bit registers are shifted to the right by two bits.
    pub(crate) shifted_two: u16,
    /// Loads of 16 bytes and more, but from the stack.
    pub(crate) loads: u16,
    /// Stores of 16 bytes and more, but to the stack.
    pub(crate) stores: u16,
    /// Other instructions on vectors.
    pub(crate) lanes_computed: u16,
    /// An instruction that copies memory by itself.
    pub(crate) copies: bool,
}
