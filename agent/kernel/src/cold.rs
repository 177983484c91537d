//! Timing of calls that find the caches cold.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Where Linux has the size of the second-level cache of a CPU.
const CACHE_SIZE: &str = "/sys/devices/system/cpu/cpu0/cache/index2/size";
/// Where it does not: as most servers have at least.
const DEFAULT_BYTES: usize = 1 << 20;
/// Walks take a tenth of a millisecond for each MiB.
const MOST_BYTES: usize = 4 << 20;
const LINE_BYTES: usize = 64;
const CALLS: usize = 33;

/// A buffer that fills the second-level cache.
pub(super) struct Cold {
    buffer: Vec<u8>,
}

impl Cold {
    pub(super) fn new() -> Self {
        let text = std::fs::read_to_string(CACHE_SIZE).unwrap_or_default();
        let bytes = kibibytes(&text).unwrap_or(DEFAULT_BYTES).min(MOST_BYTES);
        Self {
            buffer: vec![0; bytes],
        }
    }

    /// The median time of a call after the whole buffer was written.
    pub(super) fn time(&mut self, mut call: impl FnMut()) -> Duration {
        let mut times: Vec<Duration> = (0..CALLS).map(|_| self.time_one(&mut call)).collect();
        times.sort_unstable();
        times.get(CALLS / 2).copied().unwrap_or_default()
    }

    fn time_one(&mut self, call: &mut impl FnMut()) -> Duration {
        for byte in self.buffer.iter_mut().step_by(LINE_BYTES) {
            *byte = byte.wrapping_add(1);
        }
        black_box(&mut self.buffer);
        let begin = Instant::now();
        call();
        begin.elapsed()
    }
}

/// The bytes of a size as in `2048K`.
fn kibibytes(text: &str) -> Option<usize> {
    let kibibytes: usize = text.trim().strip_suffix('K')?.parse().ok()?;
    (kibibytes > 0).then(|| kibibytes.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_caches_are_read() {
        assert_eq!(kibibytes("2048K\n"), Some(2 << 20));
        assert_eq!(kibibytes("0K\n"), None);
        assert_eq!(kibibytes(""), None);
    }

    #[test]
    fn a_call_is_timed_without_the_walk_before_it() {
        let mut cold = Cold {
            buffer: vec![0; LINE_BYTES],
        };
        let pause = Duration::from_micros(100);
        assert!(cold.time(|| std::thread::sleep(pause)) >= pause);
        let walks = cold.buffer.first().map(|&first| usize::from(first));
        assert_eq!(walks, Some(CALLS));
    }
}
