//! Processes that a service starts.

use super::since::sums;

/// Processes that began while their service was known to the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processes {
    /// Processes forked, threads not counted.
    pub forked: u64,
    /// Programs started in place of another.
    pub executed: u64,
}

sums!(Processes: forked, executed);
