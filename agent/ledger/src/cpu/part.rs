//! A part of the CPU time of a service.

use std::time::Duration;

/// CPU time and samples of an activity in a mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// How many samples.
    pub samples: u64,
    pub(super) nanos: u64,
}

impl Part {
    pub(crate) const fn since(self, earlier: Self) -> Self {
        Self {
            samples: self.samples.saturating_sub(earlier.samples),
            nanos: self.nanos.saturating_sub(earlier.nanos),
        }
    }

    pub(crate) const fn add(&mut self, more: Self) {
        self.samples = self.samples.saturating_add(more.samples);
        self.nanos = self.nanos.saturating_add(more.nanos);
    }

    /// CPU time; never decreases.
    pub const fn cpu(self) -> Duration {
        Duration::from_nanos(self.nanos)
    }
}
