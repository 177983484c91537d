//! Timing of what takes less than a microsecond.

use std::time::{Duration, Instant};

const CALLS_A_ROUND: u32 = 400;

/// The least time of one call over so many rounds: interruptions only add.
pub(super) fn least_time(rounds: u32, mut call: impl FnMut()) -> Duration {
    let mut round = || {
        let begin = Instant::now();
        for _ in 0..CALLS_A_ROUND {
            call();
        }
        begin.elapsed() / CALLS_A_ROUND
    };
    (0..rounds).map(|_| round()).min().unwrap_or_default()
}
