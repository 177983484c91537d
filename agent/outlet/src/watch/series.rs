//! One service over time: a column for each figure.

use std::collections::{BTreeMap, VecDeque};

use tlsprof_common::Role;

use super::figures::{Figure, Sums};

/// What came in an interval, and what stood at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// What was added to the ledger.
    pub(crate) sums: Sums,
    /// TIME_WAIT sockets at the end, by role; none where there never were any.
    pub time_wait: BTreeMap<Role, u64>,
}

impl Slice {
    pub(super) fn is_empty(&self) -> bool {
        self.sums.is_empty() && self.time_wait.values().all(|count| *count == 0)
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.sums.add(&other.sums);
        for (role, count) in &other.time_wait {
            *self.time_wait.entry(*role).or_default() += count;
        }
    }
}

/// A figure over time, or what stood: a value for each point.
#[derive(Clone, Debug)]
struct Column {
    values: VecDeque<u64>,
    /// Number of the last point in which it was not zero.
    last: u64,
}

/// What there is a column for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heading {
    /// What came in a point.
    Sum(Figure),
    /// TIME_WAIT sockets at its end.
    TimeWait(Role),
}

impl Heading {
    /// Its name in JSON.
    pub fn name(self) -> String {
        match self {
            Self::Sum(figure) => figure.name(),
            Self::TimeWait(role) => format!("time_wait/{}", role.label()),
        }
    }

    /// A value in base units.
    #[allow(clippy::cast_precision_loss, reason = "sockets of a host")]
    pub(crate) fn in_base_units(self, value: u64) -> f64 {
        match self {
            Self::Sum(figure) => figure.in_base_units(value),
            Self::TimeWait(_) => value as f64,
        }
    }
}

/// One service over time.
#[derive(Clone, Debug, Default)]
pub struct Series(BTreeMap<Heading, Column>);

impl Series {
    /// Each figure that was not zero throughout, with a value for each point, oldest first.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (Heading, &VecDeque<u64>)> {
        let columns = self.0.iter();
        columns.map(|(heading, column)| (*heading, &column.values))
    }

    /// Sum of a figure over the newest `points`.
    pub fn sum(&self, figure: Figure, points: usize) -> u64 {
        let column = self.0.get(&Heading::Sum(figure));
        column.map_or(0, |column| column.values.iter().rev().take(points).sum())
    }

    /// Whether all of it was zero.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sums of all figures over all points that are held.
    pub fn total(&self) -> Sums {
        let sums = self.0.keys().filter_map(|heading| match heading {
            Heading::Sum(figure) => Some((*figure, self.sum(*figure, usize::MAX))),
            Heading::TimeWait(_) => None,
        });
        sums.collect()
    }

    /// Adds a point; `at` is its number, `held` points are held before it, and `points` at most.
    pub(super) fn push(&mut self, slice: &Slice, at: u64, held: usize, points: usize) {
        let sums = slice.sums.iter();
        let sums = sums.map(|(figure, value)| (Heading::Sum(figure), value));
        let standing = slice.time_wait.iter();
        let standing = standing.map(|(role, count)| (Heading::TimeWait(*role), *count));
        for (heading, value) in sums.chain(standing).filter(|(_, value)| *value > 0) {
            let column = self.0.entry(heading).or_insert_with(|| {
                let mut values = VecDeque::with_capacity(points);
                values.resize(held, 0);
                Column { values, last: at }
            });
            column.values.push_back(value);
            column.last = at;
        }
        for column in self.0.values_mut().filter(|column| column.last != at) {
            column.values.push_back(0);
        }
    }

    /// Forgets the oldest point, and the figures that are zero in all others.
    pub(super) fn pop(&mut self, oldest: u64) {
        self.0.retain(|_, column| {
            column.values.pop_front();
            column.last >= oldest
        });
    }

    /// Adds those of another service, point by point.
    pub(super) fn fold(&mut self, other: Self) {
        for (heading, column) in other.0 {
            let Some(kept) = self.0.get_mut(&heading) else {
                self.0.insert(heading, column);
                continue;
            };
            kept.last = kept.last.max(column.last);
            for (sum, value) in kept.values.iter_mut().zip(column.values) {
                *sum = sum.saturating_add(value);
            }
        }
    }
}
