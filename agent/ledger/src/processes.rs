//! Processes that a service starts.

/// Processes that began while their service was known to the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processes {
    /// Processes forked, threads not counted.
    pub forked: u64,
    /// Programs started in place of another.
    pub executed: u64,
}

impl Processes {
    /// Those that began after an earlier state.
    pub(super) const fn since(self, earlier: Self) -> Self {
        Self {
            forked: self.forked.saturating_sub(earlier.forked),
            executed: self.executed.saturating_sub(earlier.executed),
        }
    }
}
