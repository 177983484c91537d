//! Whose CPU time the kernel counts that of interrupts as.

/// Where the kernel counts the time of interrupts and softirqs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptTime {
    /// In the thread that they hit: its utime and stime contain it.
    InThread,
    /// Apart: no thread's time contains it.
    Apart,
    /// It could not be found out.
    Unknown,
}
