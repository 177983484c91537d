//! Which listening sockets a full accept queue made the kernel drop packets of.
//!
//! The kernel counts overflows for each network namespace (`TcpExt
//! ListenOverflows`), and drops of whatever cause for each listening socket
//! (`sk_drops`); every overflow is such a drop. Between two readings the overflows
//! of the namespace go to the sockets that dropped packets: exactly, if all their
//! drops were overflows or only one socket dropped any; else in proportion.
//!
//! The two are not read at the same instant. The namespace must be read first: then
//! a drop may be known before its overflow, and waits one reading for it.

use std::collections::BTreeMap;

use tlsprof_kernel::sock_diag::ListeningSocket;

/// By the cookie of a socket.
type Counts = BTreeMap<u64, u64>;

/// The counts of one network namespace as of the last reading.
#[derive(Clone, Debug, Default)]
pub struct Overflows {
    /// None until the first reading.
    counted: Option<u64>,
    drops: BTreeMap<u64, u32>,
    /// Drops of the last reading whose overflows, if they were any, it did not know yet.
    early: Counts,
}

impl Overflows {
    /// Takes a reading: the overflows of the namespace, then its listening sockets.
    /// Returns the new overflows by the cookies of the sockets; those of a socket that
    /// is gone are in none. The first reading is what later ones are compared with.
    pub fn take(&mut self, counted: u64, sockets: &[ListeningSocket]) -> Counts {
        let before = self.counted.replace(counted);
        let known = std::mem::take(&mut self.drops);
        self.drops = sockets.iter().map(|one| (one.cookie, one.drops)).collect();
        let early = std::mem::take(&mut self.early);
        let Some(before) = before else {
            return Counts::new();
        };
        let mut overflows = counted.saturating_sub(before);
        let mut new = divide(overflows, &early);
        overflows -= new.values().sum::<u64>();
        let drops = sockets.iter().filter_map(|one| {
            let base = known.get(&one.cookie).copied().unwrap_or_default();
            let drops = one.drops.wrapping_sub(base);
            (drops > 0).then(|| (one.cookie, drops.into()))
        });
        self.early = drops.collect();
        for (cookie, count) in divide(overflows, &self.early) {
            *new.entry(cookie).or_default() += count;
            if let Some(left) = self.early.get_mut(&cookie) {
                *left -= count;
            }
        }
        new.retain(|_, count| *count > 0);
        new
    }
}

/// Divides `amount` in proportion to `parts`, to none of them more than its part.
/// Whole numbers; their sum is exact.
fn divide(amount: u64, parts: &Counts) -> Counts {
    let total: u64 = parts.values().sum();
    let amount = amount.min(total);
    let (mut seen, mut given) = (0, 0);
    let shares = parts.iter().map(|(cookie, part)| {
        seen += part;
        let share = amount_up_to(amount, seen, total) - given;
        given += share;
        (*cookie, share)
    });
    shares.collect()
}

/// `amount * seen / total`; 0 of nothing.
fn amount_up_to(amount: u64, seen: u64, total: u64) -> u64 {
    let whole = u128::from(amount) * u128::from(seen);
    let share = whole.checked_div(total.into()).unwrap_or_default();
    u64::try_from(share).unwrap_or(amount)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sockets(drops: &[u32]) -> Vec<ListeningSocket> {
        let each = (1..).zip(drops).map(|(cookie, &drops)| ListeningSocket {
            cookie,
            drops,
            ..ListeningSocket::default()
        });
        each.collect()
    }

    /// After readings, the namespace's count and the sockets' drops of each.
    fn after(readings: &[(u64, &[u32])]) -> Vec<(u64, u64)> {
        let mut overflows = Overflows::default();
        let mut sums = Counts::new();
        for (counted, drops) in readings {
            for (cookie, count) in overflows.take(*counted, &sockets(drops)) {
                *sums.entry(cookie).or_default() += count;
            }
        }
        sums.into_iter().collect()
    }

    #[test]
    fn what_was_before_is_not_counted() {
        assert_eq!(after(&[(1000, &[700, 300])]), []);
        assert_eq!(after(&[(1000, &[700]), (1005, &[705])]), [(1, 5)]);
    }

    #[test]
    fn drops_for_other_reasons_are_no_overflows() {
        assert_eq!(after(&[(0, &[0]), (0, &[50])]), []);
        assert_eq!(after(&[(0, &[0]), (3, &[50]), (3, &[50])]), [(1, 3)]);
    }

    #[test]
    fn each_socket_has_its_own() {
        let readings: &[(u64, &[u32])] = &[(0, &[0, 0, 0]), (12, &[9, 0, 3])];
        assert_eq!(after(readings), [(1, 9), (3, 3)]);
    }

    #[test]
    fn a_drop_that_is_known_before_its_overflow_waits_for_it() {
        let readings: &[(u64, &[u32])] = &[(0, &[0]), (90, &[95]), (95, &[95]), (99, &[99])];
        assert_eq!(after(readings), [(1, 99)]);
        // But not longer.
        let readings: &[(u64, &[u32])] = &[(0, &[0, 0]), (0, &[5, 0]), (0, &[5, 0]), (5, &[5, 5])];
        assert_eq!(after(readings), [(2, 5)]);
    }

    #[test]
    fn a_new_socket_counts_from_its_beginning_and_a_gone_one_keeps_nothing() {
        let readings: &[(u64, &[u32])] = &[(0, &[0]), (4, &[0, 4])];
        assert_eq!(after(readings), [(2, 4)]);
        let readings: &[(u64, &[u32])] = &[(0, &[0, 0]), (7, &[0])];
        assert_eq!(after(readings), []);
    }

    #[test]
    fn counters_of_sockets_wrap() {
        assert_eq!(after(&[(0, &[u32::MAX]), (3, &[2])]), [(1, 3)]);
    }

    proptest! {
        #[test]
        fn shares_add_up_and_exceed_no_part(amount: u32, parts in prop::collection::vec(0_u32..1000, 0..20)) {
            let parts: Counts = (0..).zip(parts.into_iter().map(u64::from)).collect();
            let shares = divide(amount.into(), &parts);
            let total: u64 = parts.values().sum();
            prop_assert_eq!(shares.values().sum::<u64>(), total.min(amount.into()));
            for (cookie, share) in &shares {
                prop_assert!(parts.get(cookie).is_some_and(|part| share <= part));
            }
        }
    }
}
