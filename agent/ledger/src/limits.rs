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

/// A time as the ledger books it: at most an hour. The cut keeps one wrong
/// record from spoiling every sum.
pub fn bounded(time: Duration) -> Duration {
    Duration::from_nanos(bounded_nanos(time).0)
}

/// Longer times are booked as this one, in nanoseconds: an hour.
const LONGEST: u64 = 3_600_000_000_000;

/// A time of the kernel side in nanoseconds, at most an hour, and whether it
/// had to be cut.
pub(super) fn bounded_nanos(time: Duration) -> (u64, bool) {
    match u64::try_from(time.as_nanos()) {
        Ok(nanos) if nanos <= LONGEST => (nanos, false),
        _ => (LONGEST, true),
    }
}
