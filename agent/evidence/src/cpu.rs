//! Samples of what the CPUs were doing.

use crate::callers::{UserStack, Word};
use tlsprof_common::Pid;
use tlsprof_common::contract::{
    TLSPROF_SAMPLE_BEFORE_PHASES, TLSPROF_SAMPLE_IN_CALL, TLSPROF_SAMPLE_IN_PHASE,
    TLSPROF_SAMPLE_KERNEL, TLSPROF_WORD_BITS, tlsprof_sample, tlsprof_sample_key,
};

/// Most bytes of machine code in a sample: as many before the instruction as from it on.
pub(crate) const CODE_LEN: usize = 256;

/// What a thread did when the clock struck, and how often the same was seen since the
/// last time that samples were taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuSample {
    /// The process on the CPU, 0 for the idle task.
    pub process: Pid,
    /// The thread was at work on a TLS handshake.
    pub handshake: bool,
    /// Its process was in the phase of no handshake yet, nor is.
    pub before_handshakes: bool,
    /// Address in user space: of the next instruction, or of the system call.
    pub instruction: u64,
    /// Machine code around `instruction`, at most [`CODE_LEN`] bytes; empty in kernel
    /// mode, and where it could not be read.
    pub code: Vec<u8>,
    /// Where in `code` the instruction begins.
    pub at: usize,
    /// Return addresses in the kernel, innermost first; empty in user mode.
    pub kernel_stack: Vec<u64>,
    /// What shows the callers: where it left user mode, in kernel mode. Without words out of handshakes, and where it
    /// could not be read.
    pub user_stack: UserStack,
    /// How many samples were like this.
    pub count: u64,
}

impl CpuSample {
    /// A sample as the kernel side keeps it; None if it is not of that form. `probed`
    /// says of which processes the TLS library has probes: there, what these see is a
    /// handshake, and elsewhere, what socket calls show.
    pub fn decode(
        key: &tlsprof_sample_key,
        sample: &tlsprof_sample,
        probed: impl FnOnce(Pid) -> bool,
    ) -> Option<Self> {
        let length = usize::try_from(sample.length).ok()?;
        let at = usize::try_from(sample.before).ok()?;
        let in_kernel = key.state & TLSPROF_SAMPLE_KERNEL != 0;
        let (code, kernel_stack) = if in_kernel {
            let depth = length / size_of::<u64>();
            let stack = sample.data.get(..depth).filter(|stack| !stack.is_empty())?;
            (Vec::new(), stack.to_vec())
        } else {
            let bytes = sample.data.iter().flat_map(|word| word.to_ne_bytes());
            let code: Vec<u8> = bytes.take(CODE_LEN).take(length).collect();
            (
                Some(code).filter(|code| code.len() == length && at <= length)?,
                Vec::new(),
            )
        };
        Some(Self {
            process: key.pid,
            handshake: at_handshake(key, probed),
            before_handshakes: key.state & TLSPROF_SAMPLE_BEFORE_PHASES != 0,
            instruction: sample.instruction,
            code,
            at,
            kernel_stack,
            user_stack: user_stack(sample)?,
            count: sample.count,
        })
    }
}

fn user_stack(sample: &tlsprof_sample) -> Option<UserStack> {
    let first = usize::try_from(sample.first_word).ok()?;
    let end = first.checked_add(usize::try_from(sample.words).ok()?)?;
    let words = sample.data.get(first..end)?.iter().map(|word| {
        let slots = word >> TLSPROF_WORD_BITS;
        let slot = sample
            .stack_pointer
            .wrapping_add(slots * size_of::<u64>() as u64);
        Word {
            at: slot,
            value: word & ((1 << TLSPROF_WORD_BITS) - 1),
        }
    });
    let mut words: Vec<Word> = words.collect();
    // Those of probed calls come first.
    words.sort_unstable();
    Some(UserStack {
        pointer: sample.stack_pointer,
        frame: sample.frame_pointer,
        link: sample.link,
        words,
    })
}

fn at_handshake(key: &tlsprof_sample_key, probed: impl FnOnce(Pid) -> bool) -> bool {
    let has = |state| key.state & state != 0;
    match (has(TLSPROF_SAMPLE_IN_CALL), has(TLSPROF_SAMPLE_IN_PHASE)) {
        (true, _) => true,
        // A phase goes on after the call until the thread's next socket call.
        (false, true) => !probed(key.pid),
        (false, false) => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::*;
    use tlsprof_common::contract::{TLSPROF_CODE_WORDS, TLSPROF_STACK_DEPTH};

    const DEPTH: usize = TLSPROF_STACK_DEPTH as usize;

    fn key(state: u32) -> tlsprof_sample_key {
        tlsprof_sample_key {
            place: 0x1000,
            pid: 7,
            state,
        }
    }

    fn sample(length: u32, data: &[u64]) -> tlsprof_sample {
        let mut sample = tlsprof_sample {
            count: 3,
            instruction: 0x1000,
            length,
            before: length.min(2),
            stack_pointer: 0x7000,
            frame_pointer: 0x7100,
            link: 0,
            words: 0,
            first_word: TLSPROF_CODE_WORDS,
            data: [u64::MAX; DEPTH],
        };
        sample.data[..data.len()].copy_from_slice(data);
        sample
    }

    fn decode(state: u32, length: u32, data: &[u64]) -> Option<CpuSample> {
        CpuSample::decode(&key(state), &sample(length, data), |_| false)
    }

    #[test]
    fn user_mode_has_code_and_no_stack() {
        let bytes = [0x48, 0x89, 0xe5, 0xc3, 1, 2, 3, 4];
        let found = decode(0, 4, &[u64::from_ne_bytes(bytes)]).unwrap();
        assert_eq!((&found.code[..], found.at), (&bytes[..4], 2));
        assert_eq!(found.kernel_stack, [0_u64; 0]);
        assert_eq!(
            (found.process, found.instruction, found.count),
            (7, 0x1000, 3)
        );
        assert_eq!(decode(0, 0, &[]).unwrap().code, [0_u8; 0]);
        assert_eq!(decode(0, 256, &[]).unwrap().code, [0xff; CODE_LEN]);
    }

    #[test]
    fn words_of_the_stack_are_where_they_were() {
        let mut sample = sample(0, &[]);
        sample.words = 2;
        let first = TLSPROF_CODE_WORDS as usize;
        sample.data[first..first + 2]
            .copy_from_slice(&[0x5555, 3 << TLSPROF_WORD_BITS | 0x7fff_1234]);
        let decoded = |sample: &tlsprof_sample| CpuSample::decode(&key(0), sample, |_| false);
        let expected = UserStack {
            pointer: 0x7000,
            frame: 0x7100,
            link: 0,
            words: vec![
                Word {
                    at: 0x7000,
                    value: 0x5555,
                },
                Word {
                    at: 0x7018,
                    value: 0x7fff_1234,
                },
            ],
        };
        assert_eq!(decoded(&sample).unwrap().user_stack, expected);
        sample.words = u32::try_from(DEPTH).unwrap();
        assert_eq!(decoded(&sample), None);
    }

    #[test]
    fn kernel_mode_has_a_stack_and_no_code() {
        let found = decode(TLSPROF_SAMPLE_KERNEL, 24, &[0xa, 0xb, 0xc]).unwrap();
        assert_eq!(found.kernel_stack, [0xa, 0xb, 0xc]);
        assert_eq!(found.code, [0_u8; 0]);
    }

    #[test]
    fn what_is_not_of_the_contract_is_refused() {
        assert_eq!(decode(0, 257, &[]), None);
        let outside = tlsprof_sample {
            before: 9,
            ..sample(8, &[])
        };
        assert_eq!(CpuSample::decode(&key(0), &outside, |_| false), None);
        assert_eq!(decode(TLSPROF_SAMPLE_KERNEL, 0, &[]), None);
        let too_long = u32::try_from(DEPTH * 8 + 8).unwrap();
        assert_eq!(decode(TLSPROF_SAMPLE_KERNEL, too_long, &[]), None);
    }

    #[test]
    fn probes_in_the_library_know_better_than_sockets() {
        let handshake = |state, probed| {
            let decoded = CpuSample::decode(&key(state), &sample(1, &[]), |_| probed);
            decoded.unwrap().handshake
        };
        let both = TLSPROF_SAMPLE_IN_CALL | TLSPROF_SAMPLE_IN_PHASE;
        for probed in [true, false] {
            assert!(!handshake(0, probed));
            assert!(handshake(TLSPROF_SAMPLE_IN_CALL, probed));
            assert!(handshake(both, probed));
            assert_eq!(handshake(TLSPROF_SAMPLE_IN_PHASE, probed), !probed);
        }
    }
}
