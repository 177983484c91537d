//! CPU time as the kernel accounts it.

use std::time::Duration;

use crate::since::sums;
use tlsprof_evidence::activity::{Activity, Mode};

/// What an account of CPU time is kept by.
pub type Key = (Activity, Mode);

/// CPU time of the processes of a service, as the kernel divides it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accounted {
    /// In user mode.
    pub user: Duration,
    /// In kernel mode.
    pub system: Duration,
}

sums!(Accounted: user, system);

impl Accounted {
    /// Both together.
    pub const fn total(self) -> Duration {
        self.user.saturating_add(self.system)
    }

    pub(super) const fn add(&mut self, other: Self) {
        self.user = self.user.saturating_add(other.user);
        self.system = self.system.saturating_add(other.system);
    }
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
