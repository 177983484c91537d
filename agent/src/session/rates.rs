//! How often the CPUs are sampled as a profile goes on.

use std::time::Duration;

/// Samples a second on each CPU, from a time since the beginning on.
type From = (Duration, u32);

/// How often the CPUs are sampled: never more often than in the beginning.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    first: u32,
    later: &'static [From],
}

impl Rates {
    /// Always the same.
    pub(crate) const fn constant(rate: u32) -> Self {
        Self {
            first: rate,
            later: &[],
        }
    }

    /// `later`: in the order of time.
    pub(crate) const fn falling(first: u32, later: &'static [From]) -> Self {
        Self { first, later }
    }

    /// In the beginning.
    pub(crate) const fn first(self) -> u32 {
        self.first
    }

    /// At that time.
    #[cfg(test)]
    pub(crate) fn at(mut self, elapsed: Duration) -> u32 {
        self.turn(elapsed).unwrap_or(self.first)
    }

    /// The new rate, if there is another one at that time.
    pub(super) fn turn(&mut self, elapsed: Duration) -> Option<u32> {
        let mut new = None;
        while let Some(((from, rate), rest)) = self.later.split_first()
            && *from <= elapsed
        {
            new = Some(*rate);
            self.later = rest;
        }
        new
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
        assert_eq!(Rates::constant(7).turn(Duration::MAX), None);
    }
}
