//! The accept queues of one service, and their booking.

use tlsprof_evidence::accept_queue::{AcceptQueues, Queue};

use super::Distribution;
use super::since::Since;

/// What waited, and waits, to be accepted by one service.
#[derive(Clone, Debug, Default)]
pub struct AcceptQueueAccount {
    /// Whether its queues could be read at all.
    pub was_read: bool,
    /// Whether it listened at any reading.
    pub listened: bool,
    /// Its listening sockets at the last reading.
    pub listeners: u32,
    /// The fullest of their queues at the last reading.
    pub present: Queue,
    /// The fullest queue of all readings.
    pub peak: Queue,
    /// Packets that were dropped for a full queue.
    pub overflows: u64,
    /// From ESTABLISHED to accept, of connections whose accept was seen.
    pub wait: Distribution,
}

/// Of the peak, the fullest since the earlier state, which [`follow_peak`](AcceptQueueAccount::follow_peak)
/// keeps there.
impl Since for AcceptQueueAccount {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            was_read: self.was_read,
            listened: self.listened,
            listeners: self.listeners,
            present: self.present,
            peak: self.present.fuller(earlier.peak),
            overflows: self.overflows.since(&earlier.overflows),
            wait: self.wait.since(&earlier.wait),
        }
    }

    fn is_zero(&self) -> bool {
        self.overflows == 0 && self.wait.is_zero()
    }
}

impl AcceptQueueAccount {
    /// Whether there is anything to report.
    pub fn is_known(&self) -> bool {
        self.listeners > 0 || self.overflows > 0 || self.wait.count() > 0
    }

    /// The fullest queue is that of now.
    pub(super) const fn forget_peak(&mut self) {
        self.peak = self.present;
    }

    /// In the earlier state of an account: the fullest queue from then on.
    pub(super) fn follow_peak(&mut self, whole: &Self) {
        self.peak = whole.present.fuller(self.peak);
    }

    pub(super) fn clear_present(&mut self) {
        self.listeners = 0;
        self.present = Queue::default();
    }

    pub(super) fn add(&mut self, queues: &AcceptQueues) {
        self.was_read = true;
        self.listened |= queues.listeners > 0;
        self.present = if self.listeners == 0 {
            queues.fullest
        } else {
            self.present.fuller(queues.fullest)
        };
        self.peak = queues.fullest.fuller(self.peak);
        self.listeners += queues.listeners;
        self.overflows += queues.overflows;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop")]

    use std::collections::BTreeMap;

    use super::*;
    use crate::{Ledger, Limits, OTHER};

    const fn queues(length: u32, overflows: u64) -> AcceptQueues {
        AcceptQueues {
            listeners: 1,
            fullest: Queue { length, limit: 10 },
            overflows,
        }
    }

    fn reading(queues: &[(&str, AcceptQueues)]) -> BTreeMap<String, AcceptQueues> {
        let owned = queues.iter().map(|(name, one)| ((*name).to_owned(), *one));
        owned.collect()
    }

    #[test]
    fn the_gauge_follows_and_the_peak_and_the_sum_stay() {
        let mut ledger = Ledger::default();
        for one in [queues(3, 0), queues(11, 5), queues(2, 4)] {
            ledger.record_accept_queues(&reading(&[("nginx", one)]));
        }
        let account = &ledger.service("nginx").unwrap().accept_queue;
        assert_eq!((account.present.length, account.peak.length), (2, 11));
        assert_eq!(account.overflows, 9);
        ledger.record_accept_queues(&reading(&[]));
        let account = &ledger.service("nginx").unwrap().accept_queue;
        assert_eq!((account.listeners, account.present.length), (0, 0));
        assert_eq!((account.peak.length, account.overflows), (11, 9));
    }

    #[test]
    fn services_beyond_the_limit_share_an_account() {
        let mut ledger = Ledger::new(Limits {
            services: 1,
            label_sets: 1,
        });
        let one = reading(&[
            ("a", queues(1, 1)),
            ("b", queues(5, 2)),
            ("c", queues(4, 3)),
        ]);
        ledger.record_accept_queues(&one);
        let other = &ledger.service(OTHER).unwrap().accept_queue;
        assert_eq!((other.listeners, other.overflows), (2, 5));
        assert_eq!(other.present.length, 5);
    }
}
