//! What is remembered of a process while its handshakes are put together.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::Handshake;
use tlsprof_common::{ConnectionId, Outcome, Resumption, Role};

/// Number of a held handshake, in the order of arrival.
pub(super) type Number = u64;

/// Socket handshakes that are remembered for late library handshakes.
const ALONE: usize = 256;
/// How late: garbage collectors free connection objects when they like.
const LATE: Duration = Duration::from_secs(60);
/// The sources see the end of a handshake at times that differ by the thread's
/// work up to its next socket call.
const SLACK: Duration = Duration::from_millis(2);
/// A mean of fewer is not used.
const ENOUGH: u32 = 20;

/// When a handshake was under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub began: Duration,
    pub ended: Duration,
}

impl Span {
    pub(super) fn of(handshake: &Handshake, ended: Duration) -> Self {
        Self {
            began: ended.saturating_sub(handshake.duration),
            ended,
        }
    }

    /// Whether both may be the same handshake: at some time both were under way.
    pub(super) fn overlaps(self, other: Self) -> bool {
        self.began <= other.ended + SLACK && other.began <= self.ended + SLACK
    }

    /// How far they are apart at that end where they are nearer. Twins begin
    /// together where the first call waits for no hello, and end together where
    /// the last one is not a late release.
    pub(super) fn apart(self, other: Self) -> Duration {
        let began = self.began.abs_diff(other.began);
        began.min(self.ended.abs_diff(other.ended))
    }
}

/// A handshake of the source socket that was booked alone, but whose library twin
/// may be still to come.
#[derive(Clone, Debug)]
pub(super) struct Alone {
    pub connection: Option<ConnectionId>,
    /// Its twin names the connection.
    pub named: bool,
    pub role: Role,
    pub(crate) span: Span,
    pub(crate) completed: bool,
}

/// One process that showed evidence in socket calls.
#[derive(Debug, Default)]
pub(super) struct Process {
    /// It has, or had, a TLS library with probes.
    pub probed: bool,
    /// Held handshakes of either source that may be each other's twins: those whose
    /// twin names the connection find each other by that.
    pub(crate) sockets: BTreeSet<(Role, Number)>,
    pub libraries: BTreeSet<(Role, Number)>,
    alone: VecDeque<Alone>,
    last_parts: LastParts,
    handovers: Handovers,
}

impl Process {
    /// Whether the CPU time of a handshake that one thread read and another answered is
    /// known in full.
    pub(super) fn judge_handover(&mut self, handshake: &mut Handshake) {
        match handshake.offloaded {
            true => handshake.offloaded = !self.handovers.are_seen(handshake),
            false => self.handovers.learn(handshake),
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.sockets.is_empty() || !self.libraries.is_empty()
    }

    pub(super) fn remember(&mut self, alone: Alone) {
        while let Some(oldest) = self.alone.front()
            && (self.alone.len() >= ALONE || oldest.span.ended + LATE < alone.span.ended)
        {
            self.alone.pop_front();
        }
        self.alone.push_back(alone);
    }

    /// Whether the socket's side of a library handshake was booked alone, by
    /// connection.
    pub(super) fn was_booked_on(&mut self, connection: ConnectionId, span: Span) -> bool {
        self.forget(|alone| alone.connection == Some(connection) && alone.span.overlaps(span))
    }

    /// The same of one that names no connection, by time: where it did not
    /// complete, so that its object may have been freed late.
    pub(super) fn was_booked(&mut self, handshake: &Handshake, span: Span) -> bool {
        handshake.outcome != Outcome::Completed
            && self.forget(|alone| {
                let broken_off = !alone.named && !alone.completed;
                broken_off && alone.role == handshake.role && alone.span.overlaps(span)
            })
    }

    fn forget(&mut self, same: impl Fn(&Alone) -> bool) -> bool {
        let at = self.alone.iter().position(same);
        at.and_then(|at| self.alone.remove(at)).is_some()
    }

    /// Learns from a handshake of the source socket whose end came alone, or
    /// estimates the end of one that came together with application data.
    pub(super) fn finish(&mut self, handshake: &mut Handshake) {
        self.last_parts.finish(handshake);
    }
}

/// Handshakes that one thread read and another one answered.
///
/// Work in a third thread would lie between the work of these two. Where that time is
/// short against their work, there was none. Where it is long, the answer may have waited
/// for a thread or a CPU: on a busy host a Go program moves its work to another thread
/// so. Then there was none either if the two worked as long as the one thread of others
/// did. A server does all its handshakes in the same threads, so those that prove it speak
/// for the others.
#[derive(Debug, Default)]
struct Handovers {
    count: u32,
    proved: u32,
    /// Of handshakes that one thread read and answered.
    whole: Means,
}

impl Handovers {
    /// Most of the work that may have been elsewhere in a handshake that proves it was not.
    const UNSEEN: u32 = 4;
    /// One in so many handshakes must be such a proof.
    const SHARE: u32 = 8;

    fn learn(&mut self, handshake: &Handshake) {
        if handshake.outcome == Outcome::Completed {
            self.whole.add(Kind::of(handshake), handshake.cpu);
        }
    }

    fn are_seen(&mut self, handshake: &Handshake) -> bool {
        let proved = handshake.unseen * Self::UNSEEN <= handshake.cpu || self.is_whole(handshake);
        self.count = self.count.saturating_add(1);
        self.proved = self.proved.saturating_add(proved.into());
        proved || self.proved.saturating_mul(Self::SHARE) >= self.count
    }

    fn is_whole(&self, handshake: &Handshake) -> bool {
        let whole = self.whole.of(Kind::of(handshake));
        let most = handshake.cpu + handshake.cpu / Self::UNSEEN;
        whole.is_some_and(|whole| whole <= most)
    }
}

/// What handshakes are alike in, for their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind(Role, &'static str, Resumption);

impl Kind {
    fn of(handshake: &Handshake) -> Self {
        Self(handshake.role, handshake.version, handshake.resumption)
    }
}

/// Sum and number of times, by kind of handshake.
#[derive(Debug, Default)]
struct Means(BTreeMap<Kind, (Duration, u32)>);

impl Means {
    fn add(&mut self, kind: Kind, time: Duration) {
        let (sum, count) = self.0.entry(kind).or_default();
        // Two million handshakes of 30 min fit.
        *sum = sum.saturating_add(time);
        *count = count.saturating_add(1);
    }

    fn of(&self, kind: Kind) -> Option<Duration> {
        let (sum, count) = self.0.get(&kind)?;
        (*count >= ENOUGH).then(|| *sum / *count)
    }
}

/// The last parts of handshakes.
#[derive(Debug, Default)]
struct LastParts(Means);

impl LastParts {
    fn finish(&mut self, handshake: &mut Handshake) {
        if handshake.outcome != Outcome::Completed || handshake.offloaded {
            return;
        }
        let kind = Kind::of(handshake);
        let Some([_, last]) = &mut handshake.flights else {
            return;
        };
        if handshake.finish_and_answer.is_zero() {
            self.0.add(kind, *last);
            return;
        }
        let Some(mean) = self.0.of(kind) else {
            return;
        };
        let finish = mean.saturating_sub(*last).min(handshake.finish_and_answer);
        *last += finish;
        handshake.cpu += finish;
        handshake.finish_and_answer -= finish;
    }
}
