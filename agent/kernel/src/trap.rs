//! The overhead of a trap in a target, calibrated on functions of our own.
#![allow(
    unsafe_code,
    reason = "calls an assembly function to time a probe on it"
)]

use std::path::Path;
use std::time::Duration;

use super::cold::Cold;
use super::cookies::Point;
use super::loaded::Loaded;
use super::probes::{Links, release_beside};

// The shape of most probe sites: the first instruction is one that the kernel emulates; and that
// of others. One for each kind of probe, so that none has to be taken out before another is timed.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".irp name, tlsprof_entry_target, tlsprof_return_target",
    ".globl \\name",
    ".type \\name, @function",
    "\\name:",
    "push rbp",
    "pop rbp",
    "ret",
    ".size \\name, . - \\name",
    ".endr",
    ".globl tlsprof_stepped_target",
    ".type tlsprof_stepped_target, @function",
    "tlsprof_stepped_target:",
    "sub rsp, 8",
    "add rsp, 8",
    "ret",
    ".size tlsprof_stepped_target, . - tlsprof_stepped_target",
);
#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".irp name, tlsprof_entry_target, tlsprof_return_target",
    ".globl \\name",
    ".type \\name, @function",
    "\\name:",
    "nop",
    "ret",
    ".size \\name, . - \\name",
    ".endr",
    ".globl tlsprof_stepped_target",
    ".type tlsprof_stepped_target, @function",
    "tlsprof_stepped_target:",
    "mov x1, x1",
    "ret",
    ".size tlsprof_stepped_target, . - tlsprof_stepped_target",
);

type Target = unsafe extern "C" fn(u64);

unsafe extern "C" {
    fn tlsprof_entry_target(object: u64);
    fn tlsprof_return_target(object: u64);
    fn tlsprof_stepped_target(object: u64);
}

/// Cost of one probe hit with the least work in its program, with cold caches: between two
/// hits a server does other work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrapCost {
    /// An entry probe on an emulated instruction.
    pub entry: Duration,
    /// A return probe, the trap at the entry that arms it included.
    pub exit: Duration,
    /// What an entry probe costs more on an instruction that the kernel runs as a copy.
    pub single_step: Duration,
}

/// Times probes on functions of our own. None where these cannot be probed; estimates
/// then leave the traps out.
pub fn calibrate(loaded: &mut Loaded) -> Option<TrapCost> {
    let mut cold = Cold::new();
    // SAFETY: the functions above touch nothing but their own stack slot.
    let mut time = |target: Target| cold.time(|| unsafe { target(0) });
    let bare = time(tlsprof_entry_target);
    let entry = attach(loaded, "connection_free", tlsprof_entry_target)?;
    let exit = attach(loaded, "handshake_exit", tlsprof_return_target)?;
    let stepped = attach(loaded, "connection_free", tlsprof_stepped_target)?;
    let emulated = time(tlsprof_entry_target);
    let cost = TrapCost {
        entry: emulated.saturating_sub(bare),
        exit: time(tlsprof_return_target).saturating_sub(bare),
        single_step: time(tlsprof_stepped_target).saturating_sub(emulated),
    };
    release_beside([entry, exit, stepped]);
    // Without it the programs take it for nothing.
    let _ = loaded.set_single_step(cost.single_step);
    Some(cost)
}

fn attach(loaded: &mut Loaded, program: &'static str, target: Target) -> Option<Links> {
    let point = Point {
        file_offset: file_offset(target as *const () as u64)?,
        cookie: 0,
        single_stepped: false,
    };
    let attached = loaded.attach(program, Path::new("/proc/self/exe"), &[point]);
    attached.ok()
}

/// Offset in our own file of the instruction at `address`.
fn file_offset(address: u64) -> Option<u64> {
    let maps = procfs::process::Process::myself().ok()?.maps().ok()?;
    let map = maps
        .iter()
        .find(|map| map.address.0 <= address && address < map.address.1)?;
    Some(address - map.address.0 + map.offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_function_has_a_file_offset() {
        let address = tlsprof_entry_target as *const () as u64;
        assert!(file_offset(address).is_some());
        assert!(file_offset(0).is_none());
    }
}
