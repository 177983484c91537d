//! TCP connections: the account of one service in one role, and its booking.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tlsprof_common::{Closer, Connection, Whole};

use super::Distribution;
use super::moments::MARGIN;
use super::since::sums;

/// Turns and bytes are known of connections that were seen whole. If they are fewer
/// than this share of those that were seen at all, costs by them are not reported.
pub(super) const ENOUGH_SEEN: f64 = 0.9;

/// Numbers of turns up to this one are kept exactly.
const EXACT: u32 = 128;

/// How long the kernel keeps a TIME_WAIT bucket: `TCP_TIMEWAIT_LEN` of
/// include/net/tcp.h, a constant since it was written.
const TIME_WAIT: Duration = Duration::from_secs(60);

/// Connections that were closed in one way.
#[derive(Clone, Debug, Default)]
pub struct Closed {
    /// How many.
    pub count: u64,
    /// Those of them that ended by a reset.
    pub reset: u64,
    /// Turns per connection, of those where they are known or estimated.
    pub turns: Turns,
}

/// Turns of connections that were not followed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EstimatedTurns {
    /// How many such connections.
    pub connections: u64,
    /// Their turns.
    pub turns: u64,
    variance: f64,
}

sums!(Closed: count, reset, turns);
sums!(EstimatedTurns: connections, turns, variance);
sums!(Turns: classes, unclassified, sum);

impl Closed {
    /// How many there are of which it is not known how many turns each of them had.
    pub fn turns_unknown(&self) -> u64 {
        self.count + self.turns.unclassified - self.turns.count()
    }
}

impl EstimatedTurns {
    fn record(&mut self, turns: u32, variance: f64) {
        self.connections += 1;
        self.turns = self.turns.saturating_add(u64::from(turns));
        self.variance += variance;
    }

    /// Half the 95% range of their turns.
    pub fn margin(&self) -> f64 {
        MARGIN * self.variance.sqrt()
    }
}

/// The connections of one service in one role.
#[derive(Clone, Debug, Default)]
pub struct ConnectionAccount {
    /// Connections that were opened.
    pub opened: u64,
    /// Those of them that ended, by who ended them.
    pub closed: BTreeMap<Closer, Closed>,
    /// Those of them that speak HTTP/2, or may.
    pub(crate) http2: u64,
    /// Requests that their turns may hide, at most.
    pub hidden_requests: u64,
    /// From the end of the TCP handshake to the end of the socket.
    pub duration: Distribution,
    /// Payload received by those that ended, in bytes.
    pub bytes_received: u64,
    /// Payload sent by those that ended, in bytes.
    pub bytes_sent: u64,
    /// TIME_WAIT buckets that were left on this side.
    pub time_wait_created: u64,
    /// Those of the turns that are estimated.
    pub estimated_turns: EstimatedTurns,
    time_wait: Standing,
    /// What the kernel counts at most, where it was asked.
    time_wait_bound: Option<u64>,
}

sums!(
    ConnectionAccount: opened, closed, http2, hidden_requests, duration, bytes_received, bytes_sent,
    time_wait_created, estimated_turns; stands: time_wait, time_wait_bound
);

impl ConnectionAccount {
    /// How many ended.
    pub fn closed_count(&self) -> u64 {
        self.closed.values().map(|closed| closed.count).sum()
    }

    /// Turns of those that ended; None where they are known of too few, and not estimated either.
    #[allow(clippy::cast_precision_loss, reason = "a share")]
    pub fn turns(&self) -> Option<u64> {
        let known: u64 = self.closed.values().map(|one| one.turns.count()).sum();
        let are_known = known as f64 >= ENOUGH_SEEN * self.closed_count() as f64;
        are_known.then(|| self.closed.values().map(|one| one.turns.sum()).sum())
    }

    /// TIME_WAIT buckets standing at a time of the monotonic clock, to a second:
    /// those created in the last 60 s, but no more than the kernel counts in the
    /// service's network namespace: it gives a bucket up early for a new
    /// connection between the same two ports.
    pub fn time_wait_standing(&self, now: Duration) -> u64 {
        let created = self.time_wait.at(now);
        self.time_wait_bound
            .map_or(created, |bound| created.min(bound))
    }

    pub(super) const fn bound_time_wait(&mut self, sockets: u64) {
        self.time_wait_bound = Some(sockets);
    }

    pub(super) fn record(&mut self, connection: &Connection, whole: &Whole) {
        let closed = self.closed.entry(connection.closed_by).or_default();
        closed.count += 1;
        closed.reset += u64::from(connection.reset);
        if let Some(turns) = whole.turns {
            match whole.estimate {
                Some(estimate) if estimate.is_mean => closed.turns.add_mean(turns),
                _ => closed.turns.record(turns),
            }
            if let Some(estimate) = whole.estimate {
                self.estimated_turns.record(turns, estimate.variance);
            }
        }
        self.http2 += u64::from(connection.may_be_http2 == Some(true));
        self.hidden_requests = self
            .hidden_requests
            .saturating_add(connection.hidden_requests(whole));
        self.duration.record(whole.duration);
        self.bytes_received = self
            .bytes_received
            .saturating_add(connection.bytes_received);
        self.bytes_sent = self.bytes_sent.saturating_add(connection.bytes_sent);
        if connection.time_wait {
            self.time_wait_created += 1;
            self.time_wait.add(connection.ended);
        }
    }
}

/// Distribution of turns per connection: exact to 128, beyond that by powers of
/// two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// Least number of the class -> connections.
    classes: BTreeMap<u32, u64>,
    /// Connections that are in no class: how many turns each of them had is not known.
    unclassified: u64,
    sum: u64,
}

impl Turns {
    fn record(&mut self, turns: u32) {
        let class = if turns <= EXACT {
            turns
        } else {
            // 129 to 255, 256 to 511 and so on.
            (1 << turns.ilog2()).max(EXACT + 1)
        };
        *self.classes.entry(class).or_default() += 1;
        self.sum = self.sum.saturating_add(u64::from(turns));
    }

    /// Adds a connection of which the turns are right in the mean of many only.
    fn add_mean(&mut self, turns: u32) {
        self.unclassified += 1;
        self.sum = self.sum.saturating_add(u64::from(turns));
    }

    /// Turns of all connections together.
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// How many connections.
    pub fn count(&self) -> u64 {
        self.classes.values().sum::<u64>() + self.unclassified
    }

    /// Classes that occurred, ascending: least and greatest number of turns, and
    /// connections.
    pub fn classes(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        self.classes.iter().map(|(&from, &count)| {
            let to = if from <= EXACT {
                from
            } else {
                u32::MAX >> from.leading_zeros()
            };
            (from, to, count)
        })
    }
}

/// Things that stand for 60 s, counted by the second in which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    seconds: VecDeque<(u64, u64)>,
}

impl Standing {
    pub(super) fn add(&mut self, at: Duration) {
        let second = at.as_secs();
        while let Some(&(first, _)) = self.seconds.front()
            && first + TIME_WAIT.as_secs() < second
        {
            self.seconds.pop_front();
        }
        // Events of different CPUs may come a little out of order.
        match self.seconds.back_mut() {
            Some((last, count)) if *last >= second => *count += 1,
            _ => self.seconds.push_back((second, 1)),
        }
    }

    pub(super) fn at(&self, now: Duration) -> u64 {
        let stands = |second: u64| second + TIME_WAIT.as_secs() > now.as_secs();
        let counts = self.seconds.iter().filter(|(second, _)| stands(*second));
        counts.map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(turns: &[u32]) -> Vec<(u32, u32, u64)> {
        let mut of = Turns::default();
        for &number in turns {
            of.record(number);
        }
        of.classes().collect()
    }

    #[test]
    fn small_numbers_of_turns_are_exact() {
        assert_eq!(
            classes(&[0, 5, 5, 128]),
            [(0, 0, 1), (5, 5, 2), (128, 128, 1)]
        );
    }

    #[test]
    fn large_numbers_of_turns_are_kept_by_powers_of_two() {
        assert_eq!(classes(&[129, 255, 256]), [(129, 255, 2), (256, 511, 1)]);
        assert_eq!(classes(&[u32::MAX]), [(1 << 31, u32::MAX, 1)]);
    }

    #[test]
    fn a_bucket_stands_for_a_minute() {
        let mut standing = Standing::default();
        let second = Duration::from_secs;
        for at in [10, 10, 11, 40] {
            standing.add(second(at));
        }
        assert_eq!(standing.at(second(40)), 4);
        assert_eq!(standing.at(second(69)), 4);
        assert_eq!(standing.at(second(70)), 2);
        assert_eq!(standing.at(second(100)), 0);
    }

    #[test]
    fn the_window_of_standing_buckets_is_bounded() {
        let mut standing = Standing::default();
        for at in 0..1000 {
            standing.add(Duration::from_secs(at));
            // Late evidence from another CPU.
            standing.add(Duration::from_secs(at.saturating_sub(1)));
        }
        assert!(standing.seconds.len() <= 61);
    }
}
