//! What code shows that a process has compiled itself, by more of it than a sample has.

use std::io;

use tlsprof_common::Pid;
use tlsprof_discover::memory::Surroundings;
use tlsprof_evidence::cpu::CpuSample;
use tlsprof_evidence::fingerprint::Answers;

/// Places that are remembered, some 300 bytes each.
const MAX_PLACES: usize = 4096;

/// Answers to one question about such code. With the code, in case that something else is compiled there later.
#[derive(Debug)]
pub(in crate::session) struct Compiled {
    shown: Answers<(Pid, u64, Box<[u8]>), bool>,
    shows: fn(&[u8], usize) -> bool,
}

impl Compiled {
    /// `shows`: what is asked, of code and the place in it that was sampled.
    pub(in crate::session) fn new(shows: fn(&[u8], usize) -> bool) -> Self {
        Self {
            shown: Answers::new(MAX_PLACES),
            shows,
        }
    }

    /// The answer for a sample. `around` reads the memory around an address of a process, the first time.
    pub(in crate::session) fn ask(
        &mut self,
        sample: &CpuSample,
        around: impl FnOnce(Pid, u64) -> io::Result<Surroundings>,
    ) -> bool {
        let (process, address) = (sample.process, sample.instruction);
        let shows = self.shows;
        let question = (process, address, sample.code.as_slice().into());
        self.shown.get(question, |_| {
            let around = around(process, address);
            around.is_ok_and(|around| is_there(sample, &around) && shows(&around.bytes, around.at))
        })
    }
}

/// Whether what is there now is what was sampled.
fn is_there(sample: &CpuSample, around: &Surroundings) -> bool {
    let begin = around.at.checked_sub(sample.at);
    let there = begin.and_then(|begin| around.bytes.get(begin..)?.get(..sample.code.len()));
    there == Some(&sample.code)
}
