//! What is known of the handshakes of a cohort, and how sure that is. Pure.

use std::mem;

use super::fractions::Fractions;
use super::sample::{Mean, Sample, added_variance};
use tlsprof_evidence::{Estimate, Evidence, Handshake};

/// What the last window says of the connections after it.
#[derive(Debug)]
pub(super) struct Known {
    /// To be booked in turn.
    handshakes: Vec<Evidence>,
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
    pub(super) fn new(seen: Sample<Handshake>, connections: usize, before: Option<&Self>) -> Self {
        let share = Mean::of_share(seen.count(), connections);
        let handshakes = seen.into_kept();
        let times = handshakes.iter().map(|one| one.cpu.as_secs_f64());
        let cpu = (!handshakes.is_empty())
            .then(|| Mean::of(times).after_any(before.and_then(|before| before.cpu)));
        Self {
            handshakes: handshakes
                .into_iter()
                .map(|one| Evidence::Handshake(Box::new(one)))
                .collect(),
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

    /// What so many connections that were not followed owe; `owed` has the part of a handshake
    /// that is left of the ones before. `book` gets what is to be booked.
    pub(super) fn stand_for(
        &mut self,
        connections: f64,
        owed: &mut Fractions,
        book: &mut impl FnMut(&Evidence),
    ) {
        self.count_variance += added_variance(self.connections, connections, self.share.variance);
        self.connections += connections;
        owed.add(self.share.mean * connections);
        while owed.take_one() {
            self.book_next(book);
        }
    }

    fn book_next(&mut self, book: &mut impl FnMut(&Evidence)) {
        let (Some(cpu), Some(evidence)) = (self.cpu, self.handshakes.get_mut(self.next)) else {
            return;
        };
        let count_variance = mem::take(&mut self.count_variance);
        if let Evidence::Handshake(handshake) = evidence {
            handshake.estimate = Some(Estimate {
                count_variance,
                cpu_variance: added_variance(self.booked, 1.0, cpu.variance)
                    + cpu.mean.powi(2) * count_variance,
            });
        }
        self.booked += 1.0;
        book(evidence);
        self.next = (self.next + 1) % self.handshakes.len();
    }
}
