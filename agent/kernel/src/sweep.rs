//! Removes handshakes of connections that have been silent for long. The program that ends a
//! handshake may never have run: from 7.1 on the kernel skips a tracepoint's program while
//! another thread is preempted inside it.

use super::loaded::{Loaded, MAX_KEYS};
use super::plain::Pod;

/// Given up at once: the kernel side keeps twice as many marks (`GIVEN_UP`) and drops the
/// oldest.
const AT_ONCE: usize = 2048;

impl Loaded {
    /// Gives up the handshakes on whose connections nothing has moved since that time,
    /// in nanoseconds of the monotonic clock. Returns how many had begun; the others
    /// were of connections that had not come to TLS.
    ///
    /// Each is marked before it is taken away, so that no program takes it for one that
    /// was completed.
    pub fn give_up_silent(&mut self, since: u64) -> u64 {
        // Bounded: a key that is deleted under the iteration makes it begin again.
        let all = self.exchanges.iter().take(MAX_KEYS).filter_map(Result::ok);
        // One that is just being made has no time yet.
        let silent = all.filter(|(_, Pod(one))| (1..since).contains(&one.touched));
        let silent: Vec<(u64, bool)> = silent
            .take(AT_ONCE)
            .map(|(connection, Pod(one))| (connection, one.began != 0))
            .collect();
        let mut begun = 0;
        for (connection, had_begun) in silent {
            let marked = self.given_up.insert(&connection, &1, 0).is_ok();
            if marked && self.exchanges.remove(&connection).is_ok() && had_begun {
                begun += 1;
            }
        }
        begun
    }
}
