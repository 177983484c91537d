//! Decoded AArch64 instructions, with the operands that the rules need (Arm Architecture Reference Manual, C4.1).

use crate::primitive::code::step::{Flow, Shift};

/// Register number; 31 is the zero register or the stack pointer.
pub(super) type Register = u32;

/// Condition codes CS and CC.
pub(super) const CARRY: [u32; 2] = [2, 3];
/// Condition codes HI and LS, which read the carry as well.
const HIGHER: [u32; 2] = [8, 9];

/// A decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// ADR, ADRP.
    Address {
        to: Register,
        address: u64,
        is_page: bool,
    },
    /// ADD and SUB of an immediate, negative for SUB.
    AddNumber {
        to: Register,
        from: Register,
        number: i64,
        flags: bool,
        is_long: bool,
    },
    /// AND with an immediate mask.
    And {
        to: Register,
        mask: u64,
        flags: bool,
    },
    /// MOVZ, MOVN.
    Set {
        to: Register,
        number: i64,
    },
    /// MOVK: replaces 16 bits.
    Insert {
        to: Register,
        number: u64,
        shift: u32,
    },
    /// UBFM, SBFM, BFM with `immr` and `imms`: extracts bits, or shifts them left where `first` exceeds `last`.
    Cut {
        to: Register,
        from: Register,
        first: u32,
        last: u32,
        size: u32,
    },
    /// EXTR.
    Extract {
        to: Register,
        by: u32,
    },
    /// ADD, SUB of registers, the second one shifted; `by` is None for the extended form.
    Add {
        to: Register,
        from: Register,
        other: Register,
        by: Option<Shift>,
        subtracts: bool,
        flags: bool,
        is_long: bool,
    },
    /// AND, ORR, EOR, BIC, ORN, EON, ANDS, BICS.
    Logic {
        to: Register,
        by: Option<Shift>,
        /// Source of a plain register move.
        copied: Option<Register>,
        flags: bool,
    },
    /// ADC, SBC.
    AddCarry {
        to: Register,
        from: Register,
        other: Register,
        flags: bool,
        is_long: bool,
    },
    /// CSEL, CSINC, CSINV, CSNEG; CCMP and CCMN have no destination.
    Select {
        to: Option<Register>,
        from: Register,
        other: Register,
        condition: u32,
        is_increment: bool,
    },
    /// MADD, MSUB, UMADDL, SMADDL, UMSUBL, SMSUBL, UMULH.
    Multiply {
        to: Register,
        from: Register,
        other: Register,
        product: Product,
    },
    Access(Access),
    /// LDR from a literal pool.
    Literal {
        to: Option<Register>,
        address: u64,
    },
    Flow(Flow),
    /// B.cond.
    Branch {
        target: u64,
        condition: u32,
    },
    /// CBZ, CBNZ.
    BranchOnZero {
        target: u64,
        register: Register,
    },
    /// NOP.
    Nothing,
    /// No instruction: constants behind the code.
    Data,
    /// Any other instruction, and its destination register.
    Other(Option<Register>),
}

/// Width of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Product {
    /// 32 bits.
    Short,
    /// 64 bits.
    Long,
    /// 64 bits, added to or subtracted from a register.
    Sum,
    /// Upper 64 of 128 bits, unsigned.
    Upper,
}

/// LDR, STR, LDP, STP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// None for vectors.
    pub(super) registers: [Option<Register>; 2],
    pub(super) base: Register,
    pub(super) index: Option<Register>,
    pub(super) offset: i64,
    /// Whether the base register is written back.
    pub(super) advances: bool,
    pub(super) is_store: bool,
    /// Whether it transfers 64-bit general registers.
    pub(super) is_word: bool,
}

impl Operation {
    pub(super) fn reads_carry(&self) -> bool {
        match self {
            Self::AddCarry { .. } => true,
            Self::Select { condition, .. } | Self::Branch { condition, .. } => {
                CARRY.contains(condition) || HIGHER.contains(condition)
            }
            _ => false,
        }
    }

    pub(super) const fn writes_carry(&self) -> bool {
        match self {
            Self::AddNumber { flags, .. }
            | Self::And { flags, .. }
            | Self::Add { flags, .. }
            | Self::Logic { flags, .. }
            | Self::AddCarry { flags, .. } => *flags,
            Self::Select { to, .. } => to.is_none(),
            _ => false,
        }
    }
}
