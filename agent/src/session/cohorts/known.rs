//! What is known of the handshakes of a cohort, and how sure that is. Pure.

use std::mem;

use super::fractions::Fractions;
use tlsprof_common::Outcome;
use tlsprof_evidence::{Estimate, Evidence, Handshake};

/// Handshakes of a cohort that are kept, at most. The mean of so many is off by a
/// sixteenth of the spread.
const MOST_KEPT: usize = 256;
/// Fewer failures in a window say little of how many there were.
const LEAST_FAILURES: u64 = 10;
/// Handshakes of a window: one in so many that those kept are spread over all of it.
#[derive(Debug)]
pub(super) struct Seen {
    kept: Vec<Handshake>,
    one_in: u64,
    /// How many there were.
    count: u64,
    /// Those of them that were not completed.
    failures: u64,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            one_in: 1,
            count: 0,
            failures: 0,
        }
    }
}

impl Seen {
    pub(super) fn add(&mut self, handshake: &Handshake) {
        if self.count.is_multiple_of(self.one_in) {
            if self.kept.len() == MOST_KEPT {
                let mut nth = 0;
                self.kept.retain(|_| {
                    nth += 1;
                    nth % 2 == 1
                });
                self.one_in *= 2;
            }
            if self.count.is_multiple_of(self.one_in) {
                self.kept.push(handshake.clone());
            }
        }
        self.count += 1;
        self.failures += u64::from(handshake.outcome != Outcome::Completed);
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Forgets failures where they are few.
    fn settle(mut self) -> Self {
        if self.failures < LEAST_FAILURES {
            self.kept.retain(|one| one.outcome == Outcome::Completed);
            self.count -= self.failures;
        }
        self
    }
}

/// A mean, and its variance.
#[derive(Clone, Copy, Debug)]
struct Mean {
    mean: f64,
    variance: f64,
}

impl Mean {
    /// Connections of a window are more alike than those between two: both the window and what
    /// follows it vary as much as windows do, each with half the square of their difference.
    fn after(self, before: Option<Self>) -> Self {
        let between = before.map_or(0.0, |before| (self.mean - before.mean).powi(2));
        Self {
            variance: self.variance.max(between),
            ..self
        }
    }

    /// Of the CPU seconds of handshakes, of which there is at least one.
    #[allow(clippy::cast_precision_loss, reason = "a few hundred")]
    fn of_times(handshakes: &[Handshake]) -> Self {
        let count = handshakes.len() as f64;
        let times = || handshakes.iter().map(|one| one.cpu.as_secs_f64());
        let mean = times().sum::<f64>() / count;
        let squares: f64 = times().map(|time| (time - mean).powi(2)).sum();
        let variance = match handshakes.len() {
            // One says nothing of the spread: as much as itself.
            1 => mean.powi(2),
            _ => squares / (count - 1.0) / count,
        };
        Self { mean, variance }
    }

    /// Of the share of connections with a handshake. The variance is that of Agresti and Coull
    /// (1998), which is above 0 also where all had one.
    #[allow(clippy::cast_precision_loss, reason = "counts of a second")]
    fn of_share(handshakes: u64, connections: usize) -> Self {
        let (handshakes, connections) = (handshakes as f64, connections as f64);
        let share = (handshakes + 2.0) / (connections + 4.0);
        Self {
            mean: handshakes / connections,
            variance: share * (1.0 - share).max(0.0) / (connections + 4.0),
        }
    }
}

/// What the last window says of the connections after it.
#[derive(Debug)]
pub(super) struct Known {
    handshakes: Vec<Handshake>,
    next: usize,
    /// Handshakes for each connection.
    share: Mean,
    /// Their CPU seconds.
    cpu: Option<Mean>,
    /// Connections since that were not followed, and handshakes booked for them.
    connections: f64,
    booked: f64,
    /// Variance of the number of handshakes that is not booked yet.
    count_variance: f64,
}

impl Known {
    /// After a window with so many connections, at least one.
    pub(super) fn new(seen: Seen, connections: usize, before: Option<&Self>) -> Self {
        let seen = seen.settle();
        let cpu = (!seen.kept.is_empty()).then(|| {
            let cpu = Mean::of_times(&seen.kept);
            // One window says nothing of others: it may be off by as much as itself.
            let unknown = Mean {
                mean: 0.0,
                variance: 0.0,
            };
            cpu.after(before.and_then(|before| before.cpu).or(Some(unknown)))
        });
        let share = Mean::of_share(seen.count, connections);
        Self {
            handshakes: seen.kept,
            next: 0,
            share: share.after(before.map(|before| before.share)),
            cpu,
            connections: 0.0,
            booked: 0.0,
            count_variance: 0.0,
        }
    }

    /// Handshakes for each connection.
    pub(super) const fn share(&self) -> f64 {
        self.share.mean
    }

    /// What a connection that was not followed owes; `owed` has the part of a handshake that
    /// is left of the ones before. `book` gets what is to be booked.
    pub(super) fn stand_for(&mut self, owed: &mut Fractions, book: &mut impl FnMut(&Evidence)) {
        self.connections += 1.0;
        self.count_variance += added_variance(self.connections, self.share.variance);
        owed.add(self.share.mean);
        while owed.take_one() {
            self.book_next(book);
        }
    }

    fn book_next(&mut self, book: &mut impl FnMut(&Evidence)) {
        let (Some(cpu), Some(handshake)) = (self.cpu, self.handshakes.get(self.next)) else {
            return;
        };
        self.next = (self.next + 1) % self.handshakes.len();
        self.booked += 1.0;
        let count_variance = mem::take(&mut self.count_variance);
        let mut handshake = handshake.clone();
        handshake.estimate = Some(Estimate {
            count_variance,
            cpu_variance: added_variance(self.booked, cpu.variance)
                + cpu.mean.powi(2) * count_variance,
        });
        book(&Evidence::Handshake(Box::new(handshake)));
    }
}

/// What the `count`-th adds to the variance of a sum of so many equal values, of which the
/// variance is given: they are all off by the same.
fn added_variance(count: f64, variance: f64) -> f64 {
    2.0f64.mul_add(count, -1.0) * variance
}
