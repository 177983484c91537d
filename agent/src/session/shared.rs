//! What all parts of a session share: access to the ledger, and the clock.

use std::sync::{PoisonError, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use tlsprof_ledger::{Ledger, SharedLedger};

/// The accounts, to be read. A panic elsewhere leaves the sums usable: each is written at once.
pub(super) fn read(ledger: &SharedLedger) -> RwLockReadGuard<'_, Ledger> {
    ledger.read().unwrap_or_else(PoisonError::into_inner)
}

/// The accounts, to be written.
pub(super) fn write(ledger: &SharedLedger) -> RwLockWriteGuard<'_, Ledger> {
    ledger.write().unwrap_or_else(PoisonError::into_inner)
}

/// The clock of the kernel side's times.
pub(super) fn monotonic_now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::try_from(now).unwrap_or_default()
}
