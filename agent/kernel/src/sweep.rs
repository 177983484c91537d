//! Removes handshakes of connections that have been silent for long. The program that ends a
//! handshake may never have run: from 7.1 on the kernel skips a tracepoint's program while
//! another thread is preempted inside it.

use super::loaded::{Loaded, MAX_KEYS};
use super::plain::Pod;
use tlsprof_common::contract::tlsprof_exchange;

/// Given up at once: the kernel side keeps twice as many marks (`GIVEN_UP`) and drops the
/// oldest.
const AT_ONCE: usize = 2048;

impl Loaded {
    /// Gives up the handshakes on whose connections nothing has moved since that time,
    /// in nanoseconds of the monotonic clock. Returns how many had begun; the others
    /// were of connections that had not come to TLS.
    pub fn give_up_silent(&mut self, since: u64) -> usize {
        // One that is just being made has no time yet.
        let given_up = self.give_up(|one| (1..since).contains(&one.touched));
        given_up.iter().filter(|one| one.had_begun).count()
    }

    /// Gives up all handshakes that are followed: nothing more will be seen of them. Returns
    /// the connections of those that had begun.
    pub(super) fn give_up_all(&mut self) -> Vec<u64> {
        let mut connections = Vec::new();
        loop {
            let given_up = self.give_up(|_| true);
            if given_up.is_empty() {
                return connections;
            }
            let begun = given_up.iter().filter(|one| one.had_begun);
            connections.extend(begun.map(|one| one.connection));
        }
    }

    /// Each is marked before it is taken away, so that no program takes it for one that
    /// was completed.
    fn give_up(&mut self, which: impl Fn(&tlsprof_exchange) -> bool) -> Vec<GivenUp> {
        // Bounded: a key that is deleted under the iteration makes it begin again.
        let all = self.exchanges.iter().take(MAX_KEYS).filter_map(Result::ok);
        let those = all.filter(|(_, Pod(one))| which(one));
        let mut those: Vec<GivenUp> = those
            .take(AT_ONCE)
            .map(|(connection, Pod(one))| GivenUp {
                connection,
                had_begun: one.began != 0,
            })
            .collect();
        those.retain(|one| {
            let marked = self.given_up.insert(&one.connection, &1, 0).is_ok();
            marked && self.exchanges.remove(&one.connection).is_ok()
        });
        those
    }
}

/// A handshake that was given up, or what might have become one.
struct GivenUp {
    connection: u64,
    had_begun: bool,
}
