//! Signatures that TLS 1.3 hides, learned from handshakes whose steps were
//! measured. Pure.
//!
//! While the step probes are detached, a process is taken to sign like it did
//! for the same kind of client on the same port. A new process begins without
//! knowledge, whether it is a restart or a reload with new workers. A
//! certificate that is replaced within a process shows at the next measured
//! handshake: a signature that contradicts what was known makes it unknown.

use std::collections::BTreeMap;
use std::time::Duration;

use tlsprof_common::Pid;

/// So many measured handshakes must agree, the first included.
const ENOUGH: u32 = 3;
/// What no measured handshake has confirmed for so long is forgotten. Step
/// probes are attached once a minute at least, unless each time costs much.
const UNCONFIRMED: Duration = Duration::from_secs(300);
/// Most of what is known at a time; of further listeners and kinds of clients
/// nothing is learned.
const MOST: usize = 4096;

/// What a server chooses its certificate by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Situation {
    /// The process, and when it started.
    pub process: (Pid, u64),
    /// The port that it listens on.
    pub port: u16,
    /// What the client asked for: see `Facts::certificate_request`.
    pub(crate) request: u64,
}

/// Signatures by situation.
#[derive(Debug, Default)]
pub(super) struct Learned {
    seen: BTreeMap<Situation, Seen>,
    /// When what is out of date was last dropped.
    pruned: Duration,
}

/// What measured handshakes showed.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// None if they contradicted each other.
    signature: Option<&'static str>,
    count: u32,
    last: Duration,
}

impl Seen {
    fn is_current(&self, now: Duration) -> bool {
        now.saturating_sub(self.last) < UNCONFIRMED
    }
}

impl Learned {
    /// Takes note of a signature that was measured.
    pub(super) fn measured(&mut self, what: Situation, signature: &'static str, now: Duration) {
        if self.seen.len() >= MOST && !self.seen.contains_key(&what) {
            self.prune(now);
            if self.seen.len() >= MOST {
                return;
            }
        }
        let first = Seen {
            signature: Some(signature),
            count: 0,
            last: now,
        };
        let seen = self.seen.entry(what).or_insert(first);
        if !seen.is_current(now) {
            *seen = first;
        }
        if seen.signature != Some(signature) {
            seen.signature = None;
        }
        seen.count = seen.count.saturating_add(1);
        seen.last = now;
    }

    /// Drops what nothing has confirmed for [`UNCONFIRMED`], at most that long after it.
    pub(super) fn forget(&mut self, now: Duration) {
        if now.saturating_sub(self.pruned) >= UNCONFIRMED {
            self.prune(now);
        }
    }

    fn prune(&mut self, now: Duration) {
        self.seen.retain(|_, seen| seen.is_current(now));
        self.pruned = now;
    }

    /// The signature of a handshake in which it was not measured.
    pub(super) fn signature(&self, what: &Situation, now: Duration) -> Option<&'static str> {
        let seen = self.seen.get(what)?;
        let known = seen.count >= ENOUGH && seen.is_current(now);
        known.then_some(seen.signature).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1000);
    const HERE: Situation = Situation {
        process: (4711, 1),
        port: 443,
        request: 99,
    };

    fn learned(signature: &'static str) -> Learned {
        let mut learned = Learned::default();
        for _ in 0..ENOUGH {
            assert_eq!(learned.signature(&HERE, NOW), None);
            learned.measured(HERE, signature, NOW);
        }
        learned
    }

    #[test]
    fn what_was_measured_often_enough_is_known_there_and_nowhere_else() {
        let learned = learned("rsa_2048");
        assert_eq!(learned.signature(&HERE, NOW), Some("rsa_2048"));
        for elsewhere in [
            Situation {
                process: (4712, 1),
                ..HERE
            },
            // The process id was used again.
            Situation {
                process: (4711, 2),
                ..HERE
            },
            Situation { port: 8443, ..HERE },
            Situation {
                request: 98,
                ..HERE
            },
        ] {
            assert_eq!(learned.signature(&elsewhere, NOW), None, "{elsewhere:?}");
        }
    }

    #[test]
    fn a_contradiction_makes_it_unknown() {
        let mut learned = learned("rsa_2048");
        learned.measured(HERE, "ecdsa_p256", NOW);
        assert_eq!(learned.signature(&HERE, NOW), None);
        for _ in 0..10 * ENOUGH {
            learned.measured(HERE, "ecdsa_p256", NOW);
        }
        assert_eq!(learned.signature(&HERE, NOW), None);
        // With time the old certificate is forgotten.
        let later = NOW + UNCONFIRMED;
        for _ in 0..ENOUGH {
            learned.measured(HERE, "ecdsa_p256", later);
        }
        assert_eq!(learned.signature(&HERE, later), Some("ecdsa_p256"));
    }

    #[test]
    fn what_nothing_confirms_is_forgotten() {
        let mut learned = learned("rsa_2048");
        let later = NOW + UNCONFIRMED;
        assert_eq!(learned.signature(&HERE, later), None);
        learned.measured(HERE, "ecdsa_p256", later);
        assert_eq!(learned.signature(&HERE, later), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut learned = Learned::default();
        for request in (0..).take(2 * MOST) {
            learned.measured(Situation { request, ..HERE }, "rsa_2048", NOW);
        }
        assert_eq!(learned.seen.len(), MOST);
        let new = Situation {
            request: u64::MAX,
            ..HERE
        };
        learned.measured(new, "rsa_2048", NOW + UNCONFIRMED);
        assert_eq!(learned.seen.len(), 1);
    }

    #[test]
    fn nothing_stays_in_memory_that_is_out_of_date() {
        let mut learned = learned("rsa_2048");
        learned.forget(NOW);
        learned.measured(HERE, "rsa_2048", NOW + UNCONFIRMED / 2);
        learned.forget(NOW + UNCONFIRMED);
        assert_eq!(learned.seen.len(), 1);
        learned.forget(NOW + 2 * UNCONFIRMED);
        assert_eq!(learned.seen.len(), 0);
    }
}
