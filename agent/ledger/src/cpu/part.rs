//! A part of the CPU time of a service.

use std::time::Duration;

use crate::since::sums;

/// CPU time and samples of an activity in a mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// How many samples.
    pub samples: u64,
    pub(super) nanos: u64,
}

sums!(Part: samples, nanos);

impl Part {
    pub(crate) const fn add(&mut self, more: Self) {
        self.samples = self.samples.saturating_add(more.samples);
        self.nanos = self.nanos.saturating_add(more.nanos);
    }

    /// CPU time; never decreases.
    pub const fn cpu(self) -> Duration {
        Duration::from_nanos(self.nanos)
    }
}
