//! Marks in x86-64 code.

mod notes;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};

use super::marks::{MAX_INSTRUCTIONS, Marks};
use notes::note;

/// Instructions are of different lengths, but decoding from a wrong place soon falls into step
/// with the right one. So many bytes are not believed.
const OUT_OF_STEP: usize = 16;
/// The longest instruction.
const LONGEST: usize = 15;

/// Marks of the code that runs on to `code[at]`, and on from there.
pub(super) fn marks(code: &[u8], at: usize) -> Marks {
    let mut marks = Marks::default();
    let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    if let Some(start) = run_up(&mut decoder, at) {
        go_to(&mut decoder, start);
        while decoder.position() < at {
            note(&mut marks, &decoder.decode());
        }
    }
    go_to(&mut decoder, at);
    run_on(&mut decoder, &mut marks);
    marks
}

/// Where the code begins that runs straight on to `at`; none, if that cannot be decided.
fn run_up(decoder: &mut Decoder<'_>, at: usize) -> Option<usize> {
    (0..LONGEST).find_map(|first| {
        go_to(decoder, first);
        let mut start = None;
        while decoder.position() < at {
            let position = decoder.position();
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                return None;
            }
            if !goes_on(&instruction) {
                start = Some(decoder.position());
            } else if start.is_none() && position >= first + OUT_OF_STEP {
                start = Some(position);
            }
        }
        start.filter(|_| decoder.position() == at)
    })
}

/// Decodes until the code goes elsewhere. Jumps are followed forward within the code, so that
/// this ends; those that depend on a condition are not taken.
fn run_on(decoder: &mut Decoder<'_>, marks: &mut Marks) {
    let limit = marks.instructions + MAX_INSTRUCTIONS;
    while marks.instructions < limit && decoder.can_decode() {
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            break;
        }
        note(marks, &instruction);
        if instruction.flow_control() == FlowControl::UnconditionalBranch {
            let target = usize::try_from(instruction.near_branch_target()).ok();
            match target.filter(|&target| target >= decoder.position()) {
                Some(target) if go_to(decoder, target) => {}
                _ => break,
            }
        } else if !goes_on(&instruction) {
            break;
        }
    }
}

/// The next instruction in memory may be the next to run, and belongs to it.
fn goes_on(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::Next | FlowControl::ConditionalBranch
    )
}

/// Addresses are counted from the first byte, so that they are positions.
fn go_to(decoder: &mut Decoder<'_>, position: usize) -> bool {
    let there = decoder.set_position(position).is_ok();
    decoder.set_ip(u64::try_from(decoder.position()).unwrap_or_default());
    there
}
