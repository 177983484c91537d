//! Bounds of what the ledger keeps.

use std::time::Duration;

/// What the services and the label values beyond the limits count under.
pub const OTHER: &str = "other";

/// How much is kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Services; further ones count under [`OTHER`].
    pub services: usize,
    /// Sets of version, cipher, group and so on for each service; in further
    /// ones version, cipher, group and signature count as [`OTHER`], while
    /// role, resumption and outcome stay true.
    pub label_sets: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            services: 200,
            label_sets: 300,
        }
    }
}

const HOUR: Duration = Duration::from_secs(3600);
const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);

/// A time of a handshake as the ledger books it: at most an hour. The cut keeps one
/// wrong record from spoiling every sum.
pub fn bounded(time: Duration) -> Duration {
    time.min(HOUR)
}

/// Any other time, as of a connection or of a session's age: at most 30 days.
pub fn bounded_long(time: Duration) -> Duration {
    time.min(MONTH)
}

/// A time of a handshake, in nanoseconds.
pub(super) fn bounded_nanos(time: Duration) -> u64 {
    nanos(bounded(time))
}

/// Any other time, in nanoseconds.
pub(super) fn bounded_long_nanos(time: Duration) -> u64 {
    nanos(bounded_long(time))
}

/// Of a bounded time, which fits.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
