//! When there were hooks on socket calls. Pure.

use std::collections::VecDeque;
use std::time::Duration;

/// Windows that are remembered: those of two hours, where they are fewest.
const MOST_WINDOWS: usize = 256;

/// The times with hooks. At first there are.
#[derive(Debug)]
pub(super) struct Hooked {
    since: Option<Duration>,
    /// Beginnings and ends, oldest first.
    past: VecDeque<(Duration, Duration)>,
    /// What was before is forgotten.
    known_from: Duration,
}

impl Default for Hooked {
    fn default() -> Self {
        Self {
            since: Some(Duration::ZERO),
            past: VecDeque::new(),
            known_from: Duration::ZERO,
        }
    }
}

impl Hooked {
    /// Whether there are hooks from that time on.
    pub(super) fn set(&mut self, has_hooks: bool, at: Duration) {
        match (self.since, has_hooks) {
            (None, true) => self.since = Some(at),
            (Some(since), false) => {
                self.since = None;
                self.past.push_back((since, at));
                if self.past.len() > MOST_WINDOWS
                    && let Some((_, end)) = self.past.pop_front()
                {
                    self.known_from = end;
                }
            }
            _ => {}
        }
    }

    /// For how long there were hooks between two times; None if that is forgotten.
    pub(super) fn between(&self, from: Duration, to: Duration) -> Option<Duration> {
        let overlap = |(begin, end): (Duration, Duration)| {
            let end = end.min(to);
            end.saturating_sub(begin.max(from))
        };
        let now = self
            .since
            .map_or(Duration::ZERO, |since| overlap((since, to)));
        let past = self.past.iter().rev().copied();
        let past = past.take_while(|(_, end)| *end > from);
        (from >= self.known_from).then(|| now + past.map(overlap).sum::<Duration>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn the_parts_of_a_life_with_hooks_add_up() {
        let mut hooked = Hooked::default();
        for window in 1..4 {
            hooked.set(false, ms(window * 1000 + 500));
            hooked.set(true, ms(window * 1000 + 1000));
        }
        let between = |from, to| hooked.between(ms(from), ms(to));
        assert_eq!(between(0, 1500), Some(ms(1500)));
        assert_eq!(between(1600, 1900), Some(ms(0)));
        assert_eq!(between(2400, 3100), Some(ms(200)));
        assert_eq!(between(1000, 4100), Some(ms(1600)));
    }

    #[test]
    fn what_is_forgotten_is_not_taken_for_nothing() {
        let mut hooked = Hooked::default();
        for window in 0..300 {
            hooked.set(false, ms(window * 1000 + 500));
            hooked.set(true, ms(window * 1000 + 1000));
        }
        assert_eq!(hooked.between(ms(10), ms(300_000)), None);
        assert_eq!(hooked.between(ms(298_000), ms(298_600)), Some(ms(500)));
        assert_eq!(hooked.past.len(), MOST_WINDOWS);
    }
}
