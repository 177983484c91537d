//! Probe sites in x86-64 code.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter, GasFormatter, Instruction,
    InstructionInfoFactory, OpAccess, Register,
};

use super::{Code, Needs, NoCheapSite, Placement, PlacementError, Reason};

/// Integer arguments in their order (System V ABI, AMD64, 3.2.3).
const ARGUMENTS: [Register; 6] = [
    Register::RDI,
    Register::RSI,
    Register::RDX,
    Register::RCX,
    Register::R8,
    Register::R9,
];
/// Prologues are short; a site further in would gain nothing.
const MAX_PROLOGUE: usize = 16;

pub(super) fn place(code: Code<'_>, needs: Needs) -> Result<Placement, PlacementError> {
    let entry = instructions(code)
        .next()
        .filter(|first| !first.is_invalid());
    let entry = entry.ok_or(PlacementError::Undecodable {
        address: code.address,
    })?;
    if is_refused(code, &entry) {
        let instruction = text(&entry);
        return Err(PlacementError::Refused { instruction });
    }
    Ok(match cheap_site(code, needs) {
        Ok(site) => Placement {
            offset_in_function: site.ip().wrapping_sub(code.address),
            emulated: true,
            reason: Reason::Emulated {
                instruction: text(&site),
            },
        },
        Err(why) => Placement {
            offset_in_function: 0,
            emulated: false,
            reason: Reason::Entry {
                instruction: text(&entry),
                why,
            },
        },
    })
}

/// The first emulated instruction that every call passes exactly once, with the
/// needed registers intact.
fn cheap_site(code: Code<'_>, needs: Needs) -> Result<Instruction, NoCheapSite> {
    let mut info = InstructionInfoFactory::new();
    for instruction in instructions(code).take(MAX_PROLOGUE) {
        if instruction.is_invalid() {
            return Err(NoCheapSite::UnknownExtent);
        }
        // The probe hits before its instruction runs: the site itself may push
        // or branch.
        if is_emulated(raw(code, &instruction)) {
            return passed_once(code, &instruction).map(|()| instruction);
        }
        if instruction.flow_control() != FlowControl::Next {
            return Err(NoCheapSite::Branch(text(&instruction)));
        }
        let used = info.info(&instruction).used_registers();
        for written in used.iter().filter(|used| writes(used.access())) {
            let register = written.register().full_register();
            if ARGUMENTS
                .iter()
                .take(needs.arguments)
                .any(|argument| *argument == register)
            {
                return Err(NoCheapSite::Argument(text(&instruction)));
            }
            if needs.return_address && register == Register::RSP {
                return Err(NoCheapSite::ReturnAddress(text(&instruction)));
            }
        }
    }
    Err(NoCheapSite::NoneFound)
}

/// Checks that no jump leads to behind the entry and up to `site`.
fn passed_once(code: Code<'_>, site: &Instruction) -> Result<(), NoCheapSite> {
    if site.ip() == code.address {
        return Ok(());
    }
    if !code.whole {
        return Err(NoCheapSite::UnknownExtent);
    }
    for instruction in instructions(code) {
        if instruction.is_invalid() {
            return Err(NoCheapSite::UnknownExtent);
        }
        let target = instruction.near_branch_target();
        if is_direct(&instruction) && target > code.address && target <= site.ip() {
            return Err(NoCheapSite::Loop(text(&instruction)));
        }
    }
    Ok(())
}

/// Whether the kernel emulates this instruction in a uprobe, from 5.10 on:
/// `push_setup_xol_ops` and `branch_setup_xol_ops` in
/// arch/x86/kernel/uprobes.c.
///
/// Left out, though some or all kernels emulate them:
/// - `call rel32`: older kernels push the return address to the normal stack
///   only, so that the return faults under user shadow stacks;
/// - nops of several bytes: before `insn_is_nop` came (about 6.18), `0f 1f` was
///   single-stepped and a nop with prefix 66 refused;
/// - branches with a prefix: 66 is refused, and compilers write none.
fn is_emulated(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [0x50..=0x57]                     // push %rax to %rdi
        | [0x41, 0x50..=0x57]             // push %r8 to %r15
        | [0x90]                          // nop
        | [0xeb, _]                       // jmp rel8
        | [0xe9, _, _, _, _]              // jmp rel32
        | [0x70..=0x7f, _]                // jcc rel8
        | [0x0f, 0x80..=0x8f, _, _, _, _] // jcc rel32
    )
}

/// Whether the kernel refuses a uprobe on this instruction: `is_prefix_bad` and
/// `good_insns_64` in arch/x86/kernel/uprobes.c, as far as compilers write such
/// instructions at all.
fn is_refused(code: Code<'_>, instruction: &Instruction) -> bool {
    let opcode = raw(code, instruction)
        .iter()
        .find(|byte| !matches!(**byte, 0x40..=0x4f | 0x66 | 0x67 | 0xf2 | 0xf3));
    matches!(
        opcode,
        Some(
            0x26 | 0x2e | 0x36 | 0x3e | 0xf0 // prefixes es, cs, ss, ds, lock
            | 0xcc | 0xcd | 0xce | 0xf1      // int3, int n, into, int1
            | 0x6c..=0x6f | 0xe4..=0xe7 | 0xec..=0xef // in and out
            | 0xf4 | 0xfa | 0xfb // hlt, cli, sti
        )
    )
}

fn is_direct(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::UnconditionalBranch
            | FlowControl::ConditionalBranch
            | FlowControl::Call
            | FlowControl::XbeginXabortXend
    )
}

fn writes(access: OpAccess) -> bool {
    !matches!(
        access,
        OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
    )
}

fn instructions(code: Code<'_>) -> impl Iterator<Item = Instruction> {
    let mut decoder = Decoder::with_ip(64, code.bytes, code.address, DecoderOptions::NONE);
    std::iter::from_fn(move || decoder.can_decode().then(|| decoder.decode()))
}

fn raw<'a>(code: Code<'a>, instruction: &Instruction) -> &'a [u8] {
    let start = usize::try_from(instruction.ip().wrapping_sub(code.address)).unwrap_or(usize::MAX);
    let rest = code.bytes.get(start..).unwrap_or_default();
    rest.get(..instruction.len()).unwrap_or_default()
}

fn text(instruction: &Instruction) -> String {
    let mut formatter = GasFormatter::new();
    formatter.options_mut().set_branch_leading_zeros(false);
    formatter.options_mut().set_uppercase_hex(false);
    let mut text = String::new();
    formatter.format(instruction, &mut text);
    text
}

#[cfg(test)]
mod tests;
