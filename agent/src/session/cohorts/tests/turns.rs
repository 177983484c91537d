//! Turns of connections that were not followed.

use super::*;
use tlsprof_common::{Closer, Whole};

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A connection of that many milliseconds, which that side closed.
fn lasting(length: u64, closed_by: Closer, turns: Option<u32>, ended: Duration) -> Connection {
    let one = connection();
    Connection {
        closed_by,
        ended,
        whole: one.whole.map(|whole| Whole {
            duration: ms(length),
            turns,
            ..whole
        }),
        ..one
    }
}

impl Bench {
    /// A connection is opened and closed within the window, after so many milliseconds of it.
    fn see(&mut self, after: u64, length: u64, closed_by: Closer, turns: u32) {
        let ended = self.began + ms(after + length);
        let mut one = lasting(length, closed_by, Some(turns), ended);
        self.cohorts.closed("nginx", &mut one);
        assert_eq!(one.whole.and_then(|whole| whole.estimate), None);
    }

    /// What is booked for a connection that was not followed.
    fn guess(&mut self, length: u64, closed_by: Closer) -> Option<(u32, f64)> {
        let mut one = lasting(length, closed_by, None, self.now + ms(9000));
        self.cohorts.closed("nginx", &mut one);
        let whole = one.whole?;
        whole.turns.zip(whole.estimate.map(|it| it.variance))
    }

    fn guess_turns(&mut self, closed_by: Closer) -> Option<u32> {
        self.guess(5, closed_by).map(|(turns, _)| turns)
    }

    /// A long connection ends so many milliseconds after the last window began; so many of its
    /// turns were seen.
    fn end_long(&mut self, length: u64, turns_seen: u32, after: u64) -> Option<(u32, f64)> {
        let mut one = lasting(length, Closer::Remote, None, self.began + ms(after));
        if let Some(whole) = &mut one.whole {
            whole.turns_seen = turns_seen;
        }
        self.cohorts.closed("nginx", &mut one);
        let whole = one.whole?;
        assert!(whole.estimate.is_none_or(|it| it.is_mean));
        whole.turns.zip(whole.estimate.map(|it| it.variance))
    }

    /// A window, open for half a second, with what is seen in it. A connection opens in it, too.
    fn window_of(&mut self, see: impl FnOnce(&mut Self)) {
        self.now = self.began + ms(32_000);
        self.began = self.now;
        self.go_over(Mode::Window, &[]);
        self.open(0..1, true);
        see(self);
        self.now += ms(500);
        self.go_over(Mode::Between, &[]);
    }
}

#[test]
fn connections_that_were_not_followed_have_the_turns_of_those_that_were() {
    let mut bench = Bench::new(&[Mode::Between]);
    assert_eq!(bench.guess_turns(Closer::Local), None);
    bench.window_of(|bench| {
        for turns in [1, 2, 3] {
            bench.see(100, 5, Closer::Local, turns);
        }
    });
    let turns = [(); 4].map(|()| bench.guess_turns(Closer::Local));
    assert_eq!(turns, [Some(1), Some(2), Some(3), Some(1)]);
}

#[test]
fn who_closes_after_how_many_turns_stays_apart() {
    let mut bench = Bench::new(&[Mode::Between]);
    bench.window_of(|bench| {
        bench.see(10, 5, Closer::Local, 100);
        bench.see(10, 5, Closer::Remote, 3);
        bench.see(10, 5, Closer::Remote, 3);
    });
    assert_eq!(bench.guess_turns(Closer::Local), Some(100));
    assert_eq!(bench.guess_turns(Closer::Remote), Some(3));
    // The most there are.
    assert_eq!(bench.guess_turns(Closer::Timeout), Some(3));
}

#[test]
fn short_connections_say_nothing_of_long_ones() {
    let mut bench = Bench::new(&[Mode::Between]);
    bench.window_of(|bench| {
        bench.see(10, 5, Closer::Local, 1);
        bench.see(10, 199, Closer::Local, 2);
        bench.see(10, 200, Closer::Local, 50);
    });
    let turns = [(); 3].map(|()| bench.guess_turns(Closer::Local));
    assert_eq!(turns, [Some(1), Some(2), Some(1)]);
    assert!(bench.guess(199, Closer::Local).is_some());
    assert_eq!(bench.guess(200, Closer::Local), None);
}

#[test]
fn long_connections_have_as_many_turns_in_a_second_as_long_ones_in_windows() {
    let mut bench = Bench::new(&[Mode::Between]);
    bench.window_of(|_| {});
    // Ten seconds, with all of that window in them: nothing stands for it yet.
    assert_eq!(bench.end_long(10_000, 2, 9000), None);
    bench.window_of(|_| {});
    let estimate = bench.end_long(20_000, 2, 19_000);
    assert_eq!(estimate.map(|(turns, _)| turns), Some(80));
    // What is left of a turn is not lost.
    let estimates = [(); 4].map(|()| bench.end_long(560, 0, 19_000).map(|(turns, _)| turns));
    assert_eq!(estimates, [Some(2), Some(2), Some(2), Some(2)]);
    assert_eq!(
        bench.end_long(250, 0, 19_000).map(|(turns, _)| turns),
        Some(1)
    );
}

#[test]
fn those_that_opened_late_in_a_window_would_be_the_shortest_alone() {
    let mut bench = Bench::new(&[Mode::Between]);
    bench.window_of(|bench| {
        bench.see(199, 5, Closer::Local, 4);
        bench.see(200, 5, Closer::Local, 1);
    });
    let turns = [(); 2].map(|()| bench.guess_turns(Closer::Local));
    assert_eq!(turns, [Some(4), Some(4)]);
}

#[test]
fn a_window_without_a_short_connection_says_nothing_of_turns() {
    let mut bench = Bench::new(&[Mode::Between]);
    bench.window_of(|bench| bench.see(10, 5, Closer::Local, 7));
    bench.window_of(|_| {});
    assert_eq!(bench.guess_turns(Closer::Local), Some(7));
}

#[test]
fn turns_from_before_the_windows_stand_for_the_first_connections() {
    let mut bench = Bench::before_windows();
    for _ in 0..1000 {
        bench.see(10, 5, Closer::Local, 9);
    }
    // Only the last ones count, but enough of them.
    for _ in 0..LEAST_BEFORE {
        bench.see(10, 5, Closer::Local, 3);
    }
    bench.go_over(Mode::Window, &[]);
    bench.go_over(Mode::Between, &[]);
    assert_eq!(bench.guess_turns(Closer::Local), Some(3));
}

/// Of 400 cases with 20 windows each: how many ranges hold the number of turns of long connections,
/// and the mean margin as a share of it. Each has a rate of its own, around one that changes from
/// window to window.
fn holds_for_long() -> (u32, f64) {
    let mut dice = ranges::Dice(3);
    let (mut held, mut margins) = (0, 0.0);
    for _ in 0..400 {
        let mut bench = Bench::new(&[Mode::Between]);
        let (mut truth, mut booked, mut variance) = (0.0, 0.0, 0.0);
        for window in 0..20 {
            bench.window_of(|_| {});
            let phase = dice.phase();
            for _ in 0..60 {
                // From 1 s to 31 s, each with all of this window in it or with none.
                let (length, is_in) = (1000.0 + 30_000.0 * dice.roll(), dice.roll() < 0.5);
                let rate = 40.0 * phase * dice.roll();
                let seen = if is_in { 0.5 * rate } else { 0.0 };
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "small, not negative"
                )]
                let (length, seen) = (length as u64, (seen + dice.roll()) as u32);
                let after = if is_in { length - 1 } else { 600 + length };
                let Some((turns, added)) =
                    bench.end_long(length, if is_in { seen } else { 0 }, after)
                else {
                    assert!(window == 0);
                    continue;
                };
                truth += rate * ms(length).as_secs_f64();
                booked += f64::from(turns);
                variance += added;
            }
        }
        let margin = 1.96 * variance.sqrt();
        held += u32::from((booked - truth).abs() <= margin);
        margins += margin / truth / 400.0;
    }
    (held, margins)
}

#[test]
fn ranges_of_95_percent_hold_for_turns_of_long_connections() {
    let (held, margin) = holds_for_long();
    assert!(held >= 372 && margin < 0.35, "{held} {margin}");
}

/// Of 400 cases with 20 windows each: how many ranges hold the number of turns, and the mean
/// margin as a share of it. Connections are short; the mean of their turns changes from one
/// window to the next.
fn holds() -> (u32, f64) {
    let mut dice = ranges::Dice(7);
    let (mut held, mut margins) = (0, 0.0);
    for _ in 0..400 {
        let mut bench = Bench::new(&[Mode::Between]);
        let (mut truth, mut booked, mut variance) = (0.0, 0.0, 0.0);
        for _ in 0..20 {
            let most = dice.phase() * 20.0;
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "small, above 0"
            )]
            let mut turns = || 1 + (dice.roll() * most) as u32;
            let seen = [(); 40].map(|()| turns());
            let others = [(); 300].map(|()| turns());
            bench.window_of(|bench| {
                for turns in seen {
                    bench.see(10, 5, Closer::Local, turns);
                }
            });
            for turns in others {
                let (guess, added) = bench.guess(5, Closer::Local).unwrap_or_default();
                truth += f64::from(turns);
                booked += f64::from(guess);
                variance += added;
            }
        }
        let margin = 1.96 * variance.sqrt();
        held += u32::from((booked - truth).abs() <= margin);
        margins += margin / truth / 400.0;
    }
    (held, margins)
}

#[test]
fn ranges_of_95_percent_hold_for_turns() {
    let (held, margin) = holds();
    // A range that holds because it says nothing would be of no use.
    assert!(held >= 372 && margin < 0.3, "{held} {margin}");
}
