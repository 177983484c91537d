//! Places for probes, and why there are none.

use std::fmt;

/// The code of a function.
#[derive(Clone, Copy, Debug)]
pub struct Code<'a> {
    /// Its instructions, from the first one on.
    pub bytes: &'a [u8],
    /// Virtual address of the first.
    pub address: u64,
    /// `bytes` is all of the function, so that every jump in it can be seen.
    pub(crate) whole: bool,
}

/// What the programs on a probe need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// So many integer argument registers must still hold the arguments.
    pub arguments: usize,
    /// The stack pointer must point at the return address: a uretprobe replaces
    /// what is there.
    pub(crate) return_address: bool,
}

/// Where a uprobe goes, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Bytes from the function's entry to the probed instruction.
    pub(crate) offset_in_function: u64,
    /// Whether the kernel emulates that instruction (all kernels from 5.10).
    pub(crate) emulated: bool,
    /// Why it is there.
    pub reason: Reason,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Emulated { instruction } => {
                match self.offset_in_function {
                    0 => write!(f, "{instruction} at entry")?,
                    offset => write!(f, "{instruction} at +{offset}")?,
                }
                write!(f, ": emulated by the kernel")
            }
            Reason::Entry { instruction, why } => {
                write!(f, "{instruction} at entry: single-stepped, {why}")
            }
        }
    }
}

/// Why a probe is where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The first instruction that is emulated and that every call passes.
    Emulated {
        /// Its text.
        instruction: String,
    },
    /// No such instruction: the entry.
    Entry {
        /// Text of the first instruction.
        instruction: String,
        /// What ended the search.
        why: NoCheapSite,
    },
}

/// Why the entry is the only place for a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoCheapSite {
    /// This instruction overwrites an argument that the program reads.
    Argument(String),
    /// This instruction moves the stack pointer off the return address.
    ReturnAddress(String),
    /// Control may leave here without coming back.
    Branch(String),
    /// A jump in the function leads to the way to the cheap instruction, which
    /// would then count one call twice.
    Loop(String),
    /// The end of the function is unknown, or not all of it can be decoded, so
    /// that such a jump cannot be ruled out.
    UnknownExtent,
    /// All instructions looked at are single-stepped.
    NoneFound,
    /// Nothing is known of this instruction set.
    Architecture,
}

impl fmt::Display for NoCheapSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(text) => write!(f, "{text} overwrites an argument"),
            Self::ReturnAddress(text) => write!(f, "{text} moves the stack pointer"),
            Self::Branch(text) => write!(f, "{text} leaves the straight line"),
            Self::Loop(text) => write!(f, "{text} jumps back before the cheap instruction"),
            Self::UnknownExtent => write!(f, "not all of the function can be decoded"),
            Self::NoneFound => write!(f, "no cheap instruction near"),
            Self::Architecture => write!(f, "placement does not know this processor"),
        }
    }
}

/// Why no uprobe can go into a function.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The bytes at the entry are no instruction.
    #[error("no instruction can be decoded at {address:#x}")]
    Undecodable {
        /// Virtual address of the function.
        address: u64,
    },
    /// The kernel refuses uprobes on this instruction.
    #[error("the kernel accepts no uprobe on the first instruction ({instruction})")]
    Refused {
        /// Its text.
        instruction: String,
    },
}
