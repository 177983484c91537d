//! Which processes may be at their start, by marks of the process table.

use std::collections::VecDeque;

/// Bookings, about one a second, in which a process may be at its start. One that has had no handshake by then
/// may never have any: a server's background process.
const START: usize = 10;

/// Marks of the last bookings, the oldest first. None while the first handshake of a process may be missed.
#[derive(Debug, Default)]
pub(in crate::session) struct Starts {
    marks: VecDeque<u64>,
    now: u64,
}

impl Starts {
    /// The mark of now.
    pub(in crate::session) const fn note(&mut self, mark: u64) {
        self.now = mark;
    }

    /// From now on, all connections are followed, or only those in windows.
    pub(super) fn follow(&mut self, all: bool) {
        match all {
            true if self.marks.is_empty() => self.marks.push_back(self.now),
            true => {}
            false => self.marks.clear(),
        }
    }

    /// With each booking.
    pub(super) fn go_on(&mut self) {
        if self.marks.is_empty() {
            return;
        }
        self.marks.push_back(self.now);
        if self.marks.len() > START {
            self.marks.pop_front();
        }
    }

    /// Processes that began after this mark may be at their start.
    pub(super) fn since(&self) -> Option<u64> {
        self.marks.front().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_not_longer_than_some_bookings() {
        let mut starts = Starts::default();
        starts.note(100);
        starts.follow(true);
        let mut after = |mark| {
            starts.note(mark);
            starts.go_on();
            starts.since()
        };
        assert!((101..110).all(|mark| after(mark) == Some(100)));
        assert!((110..200).all(|mark| after(mark) == Some(mark - 9)));
    }

    #[test]
    fn no_start_is_known_before_the_profile_nor_in_windows() {
        let mut starts = Starts::default();
        let mut after = |mark, all: Option<bool>| {
            starts.note(mark);
            if let Some(all) = all {
                starts.follow(all);
            }
            starts.go_on();
            starts.since()
        };
        assert_eq!(after(1, None), None);
        assert_eq!(after(2, Some(true)), Some(2));
        assert_eq!(after(3, Some(true)), Some(2));
        assert_eq!(after(4, Some(false)), None);
        assert_eq!(after(5, None), None);
        assert_eq!(after(6, Some(true)), Some(6));
    }
}
