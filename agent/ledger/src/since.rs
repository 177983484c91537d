//! What came after an earlier state, of sums that only grow.

use std::collections::BTreeMap;
use std::time::Duration;

/// A sum, or several, to which things are only added.
pub(crate) trait Since: Clone {
    /// What was added after an earlier state of the same.
    #[must_use]
    fn since(&self, earlier: &Self) -> Self;

    /// Whether nothing was added, ever.
    fn is_zero(&self) -> bool;
}

macro_rules! saturating {
    ($($type:ty),*) => { $(
        impl Since for $type {
            fn since(&self, earlier: &Self) -> Self {
                self.saturating_sub(*earlier)
            }

            fn is_zero(&self) -> bool {
                *self == Self::default()
            }
        }
    )* };
}

saturating!(u64, u128, Duration);

impl Since for f64 {
    fn since(&self, earlier: &Self) -> Self {
        (self - earlier).max(0.0)
    }

    fn is_zero(&self) -> bool {
        *self <= 0.0
    }
}

impl<T: Since, const N: usize> Since for [T; N] {
    fn since(&self, earlier: &Self) -> Self {
        let mut new = self.clone();
        for (sum, before) in new.iter_mut().zip(earlier) {
            *sum = sum.since(before);
        }
        new
    }

    fn is_zero(&self) -> bool {
        self.iter().all(Since::is_zero)
    }
}

/// Entries to which nothing was added are left out.
impl<K: Ord + Clone, V: Since> Since for BTreeMap<K, V> {
    fn since(&self, earlier: &Self) -> Self {
        let new = self.iter().map(|(key, sum)| {
            let before = earlier.get(key);
            let new = before.map_or_else(|| sum.clone(), |before| sum.since(before));
            (key.clone(), new)
        });
        new.filter(|(_, new)| !new.is_zero()).collect()
    }

    fn is_zero(&self) -> bool {
        self.values().all(Since::is_zero)
    }
}

/// Implements [`Since`] for a structure of sums. Fields after `stands:` are no sums: they
/// stay as they are. Those after `empty:` are left empty.
macro_rules! sums {
    ($type:ty: $($sum:ident),+ $(; stands: $($other:ident),+)? $(; empty: $($rest:ident),+)?) => {
        impl $crate::since::Since for $type {
            fn since(&self, earlier: &Self) -> Self {
                Self {
                    $($sum: $crate::since::Since::since(&self.$sum, &earlier.$sum),)+
                    $($($other: self.$other.clone(),)+)?
                    $($($rest: Default::default(),)+)?
                }
            }

            fn is_zero(&self) -> bool {
                $($crate::since::Since::is_zero(&self.$sum))&&+
            }
        }
    };
}

pub(crate) use sums;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq)]
    struct Account {
        count: u64,
        cpu: Duration,
        by_name: BTreeMap<&'static str, [u64; 2]>,
        last: u64,
        waiting: u64,
    }

    sums!(Account: count, cpu, by_name; stands: last; empty: waiting);

    fn account(count: u64, cpu: u64, by_name: &[(&'static str, [u64; 2])]) -> Account {
        Account {
            count,
            cpu: Duration::from_secs(cpu),
            by_name: by_name.iter().copied().collect(),
            last: count,
            waiting: count,
        }
    }

    #[test]
    fn sums_are_taken_apart_and_entries_without_news_left_out() {
        let earlier = account(3, 2, &[("a", [1, 1]), ("b", [5, 5])]);
        let now = account(7, 9, &[("a", [1, 4]), ("b", [5, 5]), ("c", [2, 0])]);
        let mut wanted = account(4, 7, &[("a", [0, 3]), ("c", [2, 0])]);
        wanted.last = 7;
        wanted.waiting = 0;
        assert_eq!(now.since(&earlier), wanted);
    }

    #[test]
    fn nothing_came_after_itself() {
        let now = account(7, 9, &[("a", [1, 4])]);
        assert!(now.since(&now).is_zero() && !now.is_zero());
    }
}
