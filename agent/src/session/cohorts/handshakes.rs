//! Handshakes of one kind, from windows to the connections that were not followed. Pure.

use std::mem;

use tlsprof_evidence::{Evidence, Handshake};

use super::fractions::Fractions;
use super::known::Known;
use super::sample::Sample;

/// Handshakes of one service in one role that ended alike.
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    /// Fewer say nothing yet: more windows are waited for.
    least: u64,
    /// Since the last time that there were enough, and the connections that they are of.
    seen: Sample<Handshake>,
    connections: usize,
    known: Option<Known>,
    /// What is to be booked.
    owed: Fractions,
    /// Connections that were not followed, before anything was known.
    waiting: u64,
}

impl Handshakes {
    /// Every window with a connection says something.
    pub(super) fn of_each_window() -> Self {
        Self::default()
    }

    /// That many have to be seen, or to be missing.
    pub(super) fn of_windows_with(least: u64) -> Self {
        Self {
            least,
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, handshake: &Handshake) {
        self.seen.add(|| handshake.clone());
    }

    /// Forgets what was seen.
    pub(super) fn clear(&mut self) {
        self.seen = Sample::default();
        self.connections = 0;
    }

    pub(super) const fn count(&self) -> u64 {
        self.seen.count()
    }

    /// Handshakes for each connection, where that is known.
    pub(super) fn share(&self) -> Option<f64> {
        self.known.as_ref().map(Known::share)
    }

    /// A window with so many connections has ended.
    pub(super) fn end(&mut self, connections: usize, book: &mut impl FnMut(&Evidence)) {
        self.connections += connections;
        if self.connections > 0 && self.is_enough() {
            self.know(book);
        }
    }

    /// Of as many connections as wait, or more, what was seen is enough however little it is: each of
    /// it stands for one at most.
    pub(super) fn settle(&mut self, book: &mut impl FnMut(&Evidence)) {
        let seen = u64::try_from(self.connections).unwrap_or(u64::MAX);
        if self.waits() && seen >= self.waiting {
            self.know(book);
        }
    }

    /// Whether connections wait for what others will show.
    pub(super) const fn waits(&self) -> bool {
        self.waiting > 0
    }

    fn know(&mut self, book: &mut impl FnMut(&Evidence)) {
        let seen = mem::take(&mut self.seen);
        let connections = mem::take(&mut self.connections);
        self.known = Some(Known::new(seen, connections, self.known.as_ref()));
        let waiting = mem::take(&mut self.waiting);
        self.stand_for(waiting, book);
    }

    /// Enough, or so few where enough were expected that there are fewer now.
    #[allow(clippy::cast_precision_loss, reason = "counts")]
    fn is_enough(&self) -> bool {
        let expected = self.share().unwrap_or_default() * self.connections as f64;
        self.seen.count() >= self.least || expected >= self.least as f64
    }

    /// Books what so many connections had that were not followed.
    #[allow(clippy::cast_precision_loss, reason = "counts")]
    pub(super) fn stand_for(&mut self, connections: u64, book: &mut impl FnMut(&Evidence)) {
        match &mut self.known {
            Some(known) => known.stand_for(connections as f64, &mut self.owed, book),
            None => self.waiting += connections,
        }
    }
}
