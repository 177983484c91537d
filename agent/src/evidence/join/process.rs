//! What is remembered of a process while its handshakes are put together.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::evidence::{ConnectionId, Handshake, Outcome, Resumption, Role};

/// Number of a held handshake, in the order of arrival.
pub(super) type Number = u64;

/// Socket handshakes that are over and remembered for late library handshakes.
const OVER: usize = 256;
/// How late: garbage collectors free connection objects when they like.
const LATE: Duration = Duration::from_secs(60);
/// The sources see the end of a handshake at times that differ by the thread's
/// work up to its next socket call.
const SLACK: Duration = Duration::from_millis(2);
/// A mean of fewer last parts is not used.
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

/// A handshake of the source socket that is over, but whose library twin may be
/// still to come.
#[derive(Clone, Debug)]
pub(super) struct Over {
    pub connection: Option<ConnectionId>,
    pub role: Role,
    pub span: Span,
    pub completed: bool,
    pub end: End,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It was booked alone.
    Alone,
    /// It was paired by time with a library handshake that named no connection,
    /// and was under way then.
    Guessed(Span),
}

/// One process that showed evidence in socket calls.
#[derive(Debug, Default)]
pub(super) struct Process {
    /// It has, or had, a TLS library with probes.
    pub probed: bool,
    /// Held handshakes of either source that may be each other's twins.
    pub sockets: BTreeSet<(Role, Number)>,
    pub libraries: BTreeSet<(Role, Number)>,
    over: VecDeque<Over>,
    last_parts: LastParts,
}

impl Process {
    pub(super) fn is_waiting(&self) -> bool {
        !self.sockets.is_empty() || !self.libraries.is_empty()
    }

    pub(super) fn remember(&mut self, over: Over) {
        while let Some(oldest) = self.over.front()
            && (self.over.len() >= OVER || oldest.span.ended + LATE < over.span.ended)
        {
            self.over.pop_front();
        }
        self.over.push_back(over);
    }

    /// What became of the socket's side of a library handshake, by connection.
    pub(super) fn end_of(&mut self, connection: ConnectionId, span: Span) -> Option<End> {
        let same = |over: &Over| over.connection == Some(connection) && over.span.overlaps(span);
        let at = self.over.iter().position(same)?;
        self.over.remove(at).map(|over| over.end)
    }

    /// Whether a library handshake was booked already, by time: where it did not
    /// complete, so that its object may have been freed late.
    pub(super) fn was_booked(&mut self, handshake: &Handshake, span: Span) -> bool {
        if handshake.outcome == Outcome::Completed || handshake.connection.is_some() {
            return false;
        }
        let twin = self.over.iter_mut().find(|over| {
            let alone = over.end == End::Alone && !over.completed;
            alone && over.role == handshake.role && over.span.overlaps(span)
        });
        // Should one come that names that connection, this was another's.
        twin.map(|over| over.end = End::Guessed(span)).is_some()
    }

    /// Learns from a handshake of the source socket whose end came alone, or
    /// estimates the end of one that came together with application data.
    pub(super) fn finish(&mut self, handshake: &mut Handshake) {
        self.last_parts.finish(handshake);
    }
}

/// What handshakes are alike in, for the length of their last part.
type Kind = (Role, &'static str, Resumption);

/// Sum and number of the last parts of handshakes, by kind.
#[derive(Debug, Default)]
struct LastParts(BTreeMap<Kind, (Duration, u32)>);

impl LastParts {
    fn finish(&mut self, handshake: &mut Handshake) {
        if handshake.outcome != Outcome::Completed || handshake.offloaded {
            return;
        }
        let kind = (handshake.role, handshake.version, handshake.resumption);
        let Some([_, last]) = &mut handshake.flights else {
            return;
        };
        if handshake.finish_and_answer.is_zero() {
            let (sum, count) = self.0.entry(kind).or_default();
            // Two million handshakes of 30 min fit.
            *sum = sum.saturating_add(*last);
            *count = count.saturating_add(1);
            return;
        }
        let mean = match self.0.get(&kind) {
            Some((sum, count)) if *count >= ENOUGH => *sum / *count,
            _ => return,
        };
        let finish = mean.saturating_sub(*last).min(handshake.finish_and_answer);
        *last += finish;
        handshake.cpu += finish;
        handshake.finish_and_answer -= finish;
    }
}
