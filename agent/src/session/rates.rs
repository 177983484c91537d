//! How often the CPUs are sampled as a profile goes on.

use std::time::Duration;

/// Samples a second on each CPU, from a time since the beginning on.
type From = (Duration, u32);

/// How often the CPUs are sampled: never more often than in the beginning, but for windows.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    now: u32,
    later: &'static [From],
    in_windows: u32,
}

impl Rates {
    /// Always the same.
    pub(crate) const fn constant(rate: u32) -> Self {
        Self {
            now: rate,
            later: &[],
            in_windows: rate,
        }
    }

    /// `later`: in the order of time.
    pub(crate) const fn falling(first: u32, later: &'static [From]) -> Self {
        Self {
            now: first,
            later,
            in_windows: first,
        }
    }

    /// Another rate where samples are taken in windows.
    pub(crate) const fn in_windows(self, rate: u32) -> Self {
        Self {
            in_windows: rate,
            ..self
        }
    }

    /// At the last turn, all the time or in windows.
    pub(super) const fn now(self, in_windows: bool) -> u32 {
        match in_windows {
            true => self.in_windows,
            false => self.now,
        }
    }

    /// In the beginning.
    pub(crate) const fn first(self) -> u32 {
        self.now
    }

    /// At that time.
    #[cfg(test)]
    pub(crate) fn at(mut self, elapsed: Duration) -> u32 {
        self.turn(elapsed);
        self.now
    }

    /// The new rate, if there is another one at that time.
    pub(super) fn turn(&mut self, elapsed: Duration) -> Option<u32> {
        let before = self.now;
        while let Some(((from, rate), rest)) = self.later.split_first()
            && *from <= elapsed
        {
            self.now = *rate;
            self.later = rest;
        }
        (self.now != before).then_some(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rate_is_told_once() {
        const LATER: [From; 3] = [
            (Duration::from_secs(2), 5),
            (Duration::from_secs(3), 3),
            (Duration::from_secs(9), 2),
        ];
        let mut rates = Rates::falling(7, &LATER);
        let mut at = |seconds| rates.turn(Duration::from_secs(seconds));
        assert_eq!([0, 1, 2, 2].map(&mut at), [None, None, Some(5), None]);
        assert_eq!([8, 9, 10].map(&mut at), [Some(3), Some(2), None]);
        assert_eq!(rates.now(false), 2);
        assert_eq!(Rates::constant(7).turn(Duration::MAX), None);
    }

    #[test]
    fn windows_may_have_a_rate_of_their_own() {
        let constant = Rates::constant(7);
        assert_eq!((constant.now(false), constant.now(true)), (7, 7));
        let more = constant.in_windows(9);
        assert_eq!((more.now(false), more.now(true)), (7, 9));
    }
}
