//! What a resumed handshake saves.

use crate::costs::range;
use crate::subject::{Subject, Tally};
use crate::sum::Sum;
use crate::{CostSource, Prediction, Range};
use tlsprof_common::{Outcome, Resumption, Role, Step};
use tlsprof_evidence::hello::Attempt;
use tlsprof_ledger::{Class, HandshakeKey, Moments, RoleAccount};

/// Why no saving is known.
const NO_COST: &str =
    "neither resumed handshakes of this service nor the steps of full ones were measured";

/// Two protocols in one: a resumed handshake of TLS 1.3 still exchanges keys.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Era {
    Tls13,
    Before,
}

impl Era {
    pub const ALL: [Self; 2] = [Self::Tls13, Self::Before];

    fn has(self, key: &HandshakeKey) -> bool {
        (self == Self::Tls13) == (key.version == "TLS1.3")
    }

    /// The steps of a full handshake that a resumed one has not.
    const fn spared(self) -> &'static [Step] {
        match self {
            Self::Tls13 => &[Step::Signing, Step::Verification],
            Self::Before => &[
                Step::KeyExchange,
                Step::Signing,
                Step::Verification,
                Step::RsaDecryption,
            ],
        }
    }

    /// Besides the steps that it spares, a resumed handshake sends no certificate, hashes
    /// less and, before TLS 1.3, needs no second flight of the client: this share of what
    /// is not in those steps. As measured on nginx, Apache httpd, HAProxy and Node.js with
    /// OpenSSL 3.0; docs/journal/2026-11-21-predicted-and-measured-savings.md.
    const fn spared_besides(self) -> Range {
        match self {
            Self::Tls13 => Range {
                low: 0.05,
                likely: 0.1,
                high: 0.25,
            },
            Self::Before => Range {
                low: 0.35,
                likely: 0.45,
                high: 0.6,
            },
        }
    }
}

pub(crate) fn full(role: Role, era: Era) -> impl Fn(&HandshakeKey) -> bool {
    move |key| {
        key.role == role
            && key.outcome == Outcome::Completed
            && key.resumption == Resumption::None
            && era.has(key)
    }
}

fn costs(subject: &Subject<'_>, wanted: impl Fn(&HandshakeKey) -> bool) -> Moments {
    let those = subject
        .account
        .handshakes
        .iter()
        .filter(|(key, _)| wanted(key));
    those.fold(Moments::default(), |sum, (_, one)| sum.plus(one.costs))
}

/// Seconds that one resumed handshake takes less than a full one, and how that is known.
fn spared(subject: &Subject<'_>, role: Role, era: Era) -> Option<(Range, &'static str)> {
    let resumed = |key: &HandshakeKey| {
        key.role == role
            && key.outcome == Outcome::Completed
            && !matches!(key.resumption, Resumption::None | Resumption::Unknown)
            && era.has(key)
    };
    let whole = range(costs(subject, full(role, era)));
    if let Some(resumed) = range(costs(subject, resumed)) {
        return Some((
            whole?.minus(resumed),
            "Estimate: (full handshake - resumed handshake of this service)",
        ));
    }
    by_steps(subject.role(role)?, era, whole?).map(|range| {
        (
            range,
            "Estimate: (steps of this service's full handshakes that resumption avoids + an \
             estimated share of the rest)",
        )
    })
}

fn by_steps(role: &RoleAccount, era: Era, whole: Range) -> Option<Range> {
    let mut sum = Range::default();
    for step in era.spared() {
        let full = |class: &Class| class.resumption == Resumption::None;
        let cost = role.steps.cost(*step, full);
        sum = sum.plus(range(cost)?);
    }
    let rest = (whole.likely - sum.likely).max(0.0);
    Some(sum.plus(era.spared_besides().times(rest)))
}

/// CPU time that resuming these handshakes would have saved, `bound` at most: see [`Sum::predict`].
pub(crate) fn predict(
    subject: &Subject<'_>,
    role: Role,
    numbers: [u64; 2],
    bound: f64,
) -> Option<Prediction> {
    let mut sum = Sum::default();
    let mut method = "";
    for (era, number) in Era::ALL.into_iter().zip(numbers) {
        if number > 0 {
            let known = spared(subject, role, era);
            method = known.map_or(method, |(_, how)| how);
            let each = known.map(|(each, _)| (each, CostSource::ThisService));
            sum.add(each, number as f64);
        }
    }
    let method = |_| format!("{method} x handshakes that could have been resumed.");
    sum.predict(subject, bound, method, || NO_COST.to_owned())
}

/// Full handshakes, as an upper bound where nothing better is known.
pub(crate) fn all_full(subject: &Subject<'_>, role: Role) -> Tally {
    subject.handshakes(|key| Era::ALL.iter().any(|era| full(role, *era)(key)))
}

pub(crate) fn attempts(
    role: &RoleAccount,
    wanted: Attempt,
) -> impl Iterator<Item = (&'static str, u64)> {
    let attempts = role.hellos.attempts.iter();
    attempts
        .filter(move |((attempt, _), _)| *attempt == wanted)
        .map(|((_, means), number)| (*means, *number))
}
