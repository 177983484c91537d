//! Handshakes that go on for ever: given up when nothing has moved for long.

use std::time::{Duration, Instant};

use super::shared::monotonic_now;
use tlsprof_kernel::loaded::Loaded;

/// Looks so many times while one becomes silent.
const LOOKS: u32 = 4;

/// What was given up.
#[derive(Debug)]
pub(super) struct Silence {
    bound: Duration,
    next: Instant,
    handshakes: u64,
}

impl Silence {
    pub(super) fn new(bound: Duration) -> Self {
        Self {
            bound,
            next: Instant::now() + bound,
            handshakes: 0,
        }
    }

    /// Gives up what has been silent for too long, if it is time to look.
    pub(super) fn turn(&mut self, loaded: &mut Loaded) {
        if Instant::now() < self.next {
            return;
        }
        let since = monotonic_now().saturating_sub(self.bound);
        let since = u64::try_from(since.as_nanos()).unwrap_or_default();
        self.handshakes += loaded.give_up_silent(since) as u64;
        self.next = Instant::now() + self.bound / LOOKS;
    }

    /// Handshakes that were given up.
    pub(super) const fn handshakes(&self) -> u64 {
        self.handshakes
    }
}
