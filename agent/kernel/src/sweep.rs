//! Removes handshakes of connections that have been silent for long. The program that ends a
//! handshake may never have run: from 7.1 on the kernel skips a tracepoint's program while
//! another thread is preempted inside it.

use std::iter;
use std::time::Duration;

use super::loaded::{Loaded, MAX_KEYS};
use super::plain::Pod;
use tlsprof_common::contract::tlsprof_exchange;

/// Given up at once: the kernel side keeps twice as many marks (`GIVEN_UP`) and drops the
/// oldest.
const AT_ONCE: usize = 2048;
/// Messages before TLS are closer together, unless the peer is distant or idle.
const LONGEST_PAUSE: Duration = Duration::from_millis(300);

impl Loaded {
    /// Gives up the handshakes on whose connections nothing has moved since that time,
    /// in nanoseconds of the monotonic clock. Returns how many had begun; the others
    /// were of connections that had not come to TLS.
    pub fn give_up_silent(&mut self, since: u64) -> usize {
        // One that is just being made has no time yet.
        let given_up = self.give_up(|one| (1..since).contains(&one.touched));
        given_up.iter().filter(|one| one.had_begun).count()
    }

    /// Whether handshakes are still followed, or connections that are on the way to TLS. `now`
    /// is of the monotonic clock.
    pub fn follows_handshakes(&self, now: Duration) -> bool {
        let since = now.saturating_sub(LONGEST_PAUSE).as_nanos();
        let since = u64::try_from(since).unwrap_or(u64::MAX);
        let mut all = self.exchanges.iter().take(MAX_KEYS).filter_map(Result::ok);
        all.any(|(_, Pod(one))| is_under_way(&one, since))
    }

    /// Gives up all handshakes that are followed: nothing more will be seen of them. Returns
    /// their connections, also those that had not come to TLS: whether they do is not known.
    pub(super) fn give_up_all(&mut self) -> Vec<u64> {
        connections(iter::repeat_with(|| self.give_up(|_| true)))
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

/// Whether a handshake has begun, or bytes have moved since that time that may lead to one. What
/// is silent before TLS, such as a scanner that only waits, need not be waited for.
const fn is_under_way(one: &tlsprof_exchange, since: u64) -> bool {
    // One that is just being made has no time yet.
    one.began != 0 || one.touched == 0 || one.touched >= since
}

/// Those that were given up in turns, up to one in which there were none.
fn connections(turns: impl Iterator<Item = Vec<GivenUp>>) -> Vec<u64> {
    let some = turns.take_while(|given_up| !given_up.is_empty());
    some.flatten().map(|one| one.connection).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlsprof_common::contract::TLSPROF_EXCHANGE_PRIVATE;

    const fn exchange(began: u64, touched: u64) -> tlsprof_exchange {
        tlsprof_exchange {
            began,
            touched,
            private: [0; TLSPROF_EXCHANGE_PRIVATE as usize],
        }
    }

    #[test]
    fn what_had_not_come_to_tls_is_given_up_like_a_handshake() {
        let one = |connection, had_begun| GivenUp {
            connection,
            had_begun,
        };
        let turns = [vec![one(1, true), one(2, false)], vec![one(3, false)]];
        let mut turns = turns.into_iter();
        let turns = iter::repeat_with(|| turns.next().unwrap_or_default());
        assert_eq!(connections(turns), [1, 2, 3]);
    }

    #[test]
    fn what_moves_before_tls_is_under_way_until_it_falls_silent() {
        assert!(is_under_way(&exchange(0, 1000), 900));
        assert!(!is_under_way(&exchange(0, 1000), 1001));
        assert!(is_under_way(&exchange(0, 0), 900));
    }

    #[test]
    fn a_handshake_is_under_way_however_long_it_is_silent() {
        assert!(is_under_way(&exchange(10, 10), 1000));
    }
}
