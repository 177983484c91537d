//! Samples of what the CPUs were doing.

use super::Pid;

/// Most bytes of machine code in a sample.
pub const CODE_LEN: usize = 128;

/// What a thread did when the clock struck, and how often the same was seen since the
/// last time that samples were taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuSample {
    /// The process on the CPU, 0 for the idle task.
    pub process: Pid,
    /// The thread was at work on a TLS handshake.
    pub handshake: bool,
    /// Address in user space: of the next instruction, or of the system call.
    pub instruction: u64,
    /// Machine code from `instruction` on, at most [`CODE_LEN`] bytes; empty in kernel
    /// mode, and where it could not be read.
    pub code: Vec<u8>,
    /// Return addresses in the kernel, innermost first; empty in user mode.
    pub kernel_stack: Vec<u64>,
    /// How many samples were like this.
    pub count: u64,
}
