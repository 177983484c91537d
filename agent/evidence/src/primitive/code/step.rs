//! One instruction: its effect on registers, memory and flags.

/// A set of general registers, one bit each.
pub(super) type Registers = u32;

/// Control flow after an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Flow {
    #[default]
    Next,
    /// No-op, also between functions.
    Pad,
    /// INT3, which fills the space between functions.
    Trap,
    /// Conditional branch to an address.
    Branch(u64),
    /// Unconditional branch to an address.
    Jump(u64),
    /// Call; the target address of a direct one.
    Call(Option<u64>),
    Return,
    /// Indirect branch, exception.
    Elsewhere,
}

/// Shift of a register by a number of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shift {
    Left(u32),
    Right(u32),
    /// To the right, with the low bits of another register behind: SHRD, EXTR.
    Double(u32),
}

impl Shift {
    pub(super) const fn by(self) -> u32 {
        match self {
            Self::Left(by) | Self::Right(by) | Self::Double(by) => by,
        }
    }
}

/// Arithmetic operation of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Does {
    #[default]
    Other,
    /// Multiplies 64-bit words to 128 bits: the source registers; one operand may be in memory.
    Multiply(Registers),
    /// Adds or subtracts words. `of`: source registers that may hold a word loaded from memory.
    Sum {
        to: Registers,
        of: Registers,
        with_carry: bool,
    },
    /// Copies the carry flag to a register, or adds it there.
    KeepCarry,
}

/// Effects of one instruction, as far as they identify loops over numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    pub(super) address: u64,
    pub(super) flow: Flow,
    pub(super) does: Does,
    /// Registers advanced by a constant, and those of them by an addition.
    pub(super) advances: Registers,
    pub(super) counts: Registers,
    /// Register compared with a constant greater than zero.
    pub(super) limits: Registers,
    /// Register compared with zero. AArch64 supplies none: compilers cut sums there without a branch.
    pub(super) asks: Registers,
    /// Base and index registers of its memory operand.
    pub(super) through: Registers,
    /// Whether the memory operand is made of 64-bit words.
    pub(super) is_word: bool,
    /// Destination registers: loaded from memory, copied from `from`, or set to another value.
    pub(super) loads: Registers,
    pub(super) copies: Registers,
    pub(super) from: Registers,
    /// Number that is set in `copies`, which has no `from` then.
    pub(super) number: Option<u64>,
    pub(super) changes: Registers,
    /// Whether it writes to memory; the source registers of a plain store.
    pub(super) stores: bool,
    pub(super) stored: Registers,
    pub(super) reads_carry: bool,
    pub(super) writes_carry: bool,
    /// Whether it sets a condition that branches depend on, or is a branch with its own.
    pub(super) sets_condition: bool,
    /// Whether it asks if a product is longer than a word.
    pub(super) asks_for_overflow: bool,
}
