//! Turns of connections that were not followed, from what windows show. Pure.
//!
//! The turns of a connection are known if it was opened and closed within a window. Long ones
//! hardly ever are. So a short connection, up to [`SHORT`], gets the turns of another one: of
//! those that opened so early in the window that each of them was seen to its end. A long one
//! gets as many as long ones had in so much time, while socket calls were seen.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::time::Duration;

use tlsprof_common::{Closer, Connection, TurnEstimate, Whole};

use super::fractions::Fractions;
use super::sample::{Mean, Sample, added_variance};

/// Two such times are within a window, also where the hooks take a while to be attached.
pub(super) const SHORT: Duration = Duration::from_millis(200);

/// Turns of a service in one role.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Short connections of the window under way, or the last ones while all are followed.
    short_seen: Sample<(Closer, u32)>,
    /// Those of the last window with any.
    short: Option<Short>,
    /// Long connections that ended since the last window.
    long_seen: Lives,
    long: Option<Long>,
    owed: Fractions,
}

/// What a window says of the short connections after it.
#[derive(Debug)]
struct Short {
    turns: BTreeMap<Closer, VecDeque<u32>>,
    mean: Mean,
    /// For how many connections it has stood.
    booked: f64,
}

/// Turns of a long connection in a second.
#[derive(Debug)]
struct Long {
    rate: Mean,
    /// For how many seconds of connections it has stood.
    seconds: f64,
}

impl Turns {
    /// A connection has ended while all are followed.
    pub(super) fn follow_for_later(&mut self, connection: &Connection, most: usize) {
        if self.short_seen.count() + self.long_seen.count >= most as u64 {
            self.short_seen = Sample::default();
            self.long_seen = Lives::default();
        }
        let Some(whole) = &connection.whole else {
            return;
        };
        match whole.duration < SHORT {
            true => self.see(connection.closed_by, whole),
            false => self.long_seen.add(whole, whole.duration),
        }
    }

    /// A connection has ended. The window began at that time; `seen`: for how much of its life
    /// there were hooks, if that is known.
    pub(super) fn closed(
        &mut self,
        connection: &mut Connection,
        began: Duration,
        seen: Option<Duration>,
    ) {
        let (closed_by, ended) = (connection.closed_by, connection.ended);
        let Some(whole) = &mut connection.whole else {
            return;
        };
        let opened = ended.saturating_sub(whole.duration);
        match (whole.turns, whole.duration < SHORT) {
            (Some(_), true) if (began..began + SHORT).contains(&opened) => {
                self.see(closed_by, whole);
            }
            (Some(_), _) => {}
            (None, true) => self.estimate_short(closed_by, whole),
            (None, false) => {
                self.long_seen.add(whole, seen.unwrap_or_default());
                self.estimate_long(whole);
            }
        }
    }

    fn see(&mut self, closed_by: Closer, whole: &Whole) {
        if let Some(turns) = whole.turns {
            self.short_seen.add(|| (closed_by, turns));
        }
    }

    /// A window has ended: what was seen up to now stands for others, if it is that much.
    pub(super) fn settle(&mut self, least: usize) {
        let seen = mem::take(&mut self.short_seen);
        if seen.count() >= least.max(1) as u64 {
            let before = self.short.as_ref().map(|known| known.mean);
            self.short = Some(Short::new(seen.into_kept(), before));
        }
        if let Some(rate) = self.long_seen.rate(least) {
            self.long_seen = Lives::default();
            let before = self.long.as_ref().map(|known| known.rate);
            self.long = Some(Long {
                rate: rate.after_any(before),
                seconds: 0.0,
            });
        }
    }

    /// Gives a connection the turns of another that the same side closed.
    fn estimate_short(&mut self, closed_by: Closer, whole: &mut Whole) {
        if let Some(known) = &mut self.short {
            whole.turns = known.next(closed_by);
            whole.estimate = Some(TurnEstimate {
                variance: added_variance(known.booked, 1.0, known.mean.variance),
                is_mean: false,
            });
            known.booked += 1.0;
        }
    }

    fn estimate_long(&mut self, whole: &mut Whole) {
        if let Some(known) = &mut self.long {
            let length = whole.duration.as_secs_f64();
            self.owed.add(known.rate.mean * length);
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole, not negative; a cast keeps within limits"
            )]
            let turns = self.owed.take_whole() as u32;
            whole.turns = Some(turns);
            whole.estimate = Some(TurnEstimate {
                variance: added_variance(known.seconds, length, known.rate.variance),
                is_mean: true,
            });
            known.seconds += length;
        }
    }
}

impl Short {
    fn new(seen: Vec<(Closer, u32)>, before: Option<Mean>) -> Self {
        let mean = Mean::of(seen.iter().map(|(_, turns)| f64::from(*turns))).after_any(before);
        let mut turns: BTreeMap<Closer, VecDeque<u32>> = BTreeMap::new();
        for (closer, number) in seen {
            turns.entry(closer).or_default().push_back(number);
        }
        Self {
            turns,
            mean,
            booked: 0.0,
        }
    }

    /// All take turns. If none was closed by that side, any will do.
    fn next(&mut self, closed_by: Closer) -> Option<u32> {
        let known = match self.turns.contains_key(&closed_by) {
            true => self.turns.get_mut(&closed_by)?,
            false => self.turns.values_mut().max_by_key(|turns| turns.len())?,
        };
        known.rotate_left(1);
        known.back().copied()
    }
}

/// Sums over long connections: what was seen of each, with the turns in it.
#[derive(Debug, Default)]
struct Lives {
    count: u64,
    turns: f64,
    seconds: f64,
    turns_squared: f64,
    seconds_squared: f64,
    products: f64,
}

impl Lives {
    fn add(&mut self, whole: &Whole, seen: Duration) {
        if seen.is_zero() {
            return;
        }
        let (turns, seconds) = (f64::from(whole.turns_seen), seen.as_secs_f64());
        self.count += 1;
        self.turns += turns;
        self.seconds += seconds;
        self.turns_squared += turns * turns;
        self.seconds_squared += seconds * seconds;
        self.products += turns * seconds;
    }

    /// Turns in a second of all together, with the variance of a ratio of sums: that of what each
    /// connection differs by from it. One connection says nothing of others.
    #[allow(clippy::cast_precision_loss, reason = "connections of some minutes")]
    fn rate(&self, least: usize) -> Option<Mean> {
        let count = self.count as f64;
        if count < least.max(1) as f64 {
            return None;
        }
        let mean = self.turns / self.seconds;
        let squares = mean.mul_add(
            mean.mul_add(self.seconds_squared, -2.0 * self.products),
            self.turns_squared,
        );
        let of_mean = self.seconds * self.seconds;
        let variance = match self.count > 1 {
            true => squares.max(0.0) * count / (count - 1.0) / of_mean,
            false => mean * mean,
        };
        Some(Mean { mean, variance })
    }
}
