//! Processes that a service starts.

use tlsprof_common::ProcessEvent;

use super::Ledger;

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

impl Ledger {
    /// Books a process that began, or a program that was started. Services without an
    /// account do not get one by that: a whole host starts processes all the time.
    pub fn record_process(&mut self, service: &str, event: &ProcessEvent) {
        let Some(account) = self.services.get_mut(service) else {
            return;
        };
        match event {
            ProcessEvent::Fork { .. } => account.processes.forked += 1,
            ProcessEvent::Exec { .. } => account.processes.executed += 1,
            ProcessEvent::Exit { .. } => {}
        }
    }
}
