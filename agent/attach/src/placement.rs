//! Chooses the instruction of a function on which a uprobe costs least.
//!
//! The kernel replaces the probed instruction by a breakpoint. Afterwards it
//! either emulates the instruction, or runs a copy of it in single-step mode: a
//! second trap, many times more expensive where traps are. Functions often begin with
//! an instruction that cannot be emulated (`endbr64`, `sub`, `test`, `cmp`), with
//! one that can just behind it.

mod site;
mod x86_64;

use tlsprof_discover::elf::Arch;

pub use site::{Code, Needs, NoCheapSite, Placement, PlacementError, Reason};

/// Chooses the instruction for a uprobe.
///
/// # Errors
/// See [`PlacementError`].
pub(crate) fn place(arch: Arch, code: Code<'_>, needs: Needs) -> Result<Placement, PlacementError> {
    match arch {
        Arch::X86_64 => x86_64::place(code, needs),
        Arch::Aarch64 | Arch::Other(_) => Ok(Placement {
            offset_in_function: 0,
            emulated: false,
            reason: Reason::Entry {
                instruction: "instruction".into(),
                why: NoCheapSite::Architecture,
            },
        }),
    }
}
