//! What one handshake, one turn and one megabyte cost: CPU time by activity, over
//! exact counts.

use std::collections::BTreeMap;
use std::time::Duration;

use tlsprof_common::{Role, labelled};
use tlsprof_evidence::activity::{Activity, Mode};

use super::connections::ENOUGH_SEEN;
use super::interval::Interval;
use super::{ConnectionAccount, OTHER, ServiceAccount};

labelled! {
    /// What is divided by.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Unit {
        /// A handshake that ended, however: all CPU time in the phase of handshakes.
        Handshake = "handshake",
        /// A turn: a request and its answer. The CPU time of `encryption`, `socket_io` and
        /// `application`: what is left without handshakes, opening and closing.
        Turn = "turn",
        /// A million bytes that TLS connections carried after their handshakes, both
        /// directions: the CPU time of `encryption`.
        Megabyte = "megabyte",
    }
}

impl Unit {
    const fn activities(self) -> &'static [Activity] {
        match self {
            Self::Handshake => &[Activity::Handshake],
            Self::Turn => &[
                Activity::Encryption,
                Activity::SocketIo,
                Activity::Application,
            ],
            Self::Megabyte => &[Activity::Encryption],
        }
    }
}

/// A cipher suite that carries this share of the bytes stands for them all.
const DOMINANT: f64 = 0.95;

/// Whether turns are as good as requests: HTTP/2 hides at most one request in a hundred turns.
pub const fn are_requests(turns: u64, hidden_requests: u64) -> bool {
    hidden_requests <= turns / 100
}

/// CPU time of one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitCost {
    /// Of what.
    pub unit: Unit,
    /// How many there were.
    pub count: f64,
    /// CPU time of one, in seconds.
    pub seconds: f64,
    /// Limits of `seconds` in 95% of cases, from the number of samples (binomial; see
    /// [`of_share`]); the counts are exact.
    pub limits: Interval,
    /// Samples that it rests on.
    pub samples: u64,
    /// The cipher suite, where one carries nearly all bytes.
    pub cipher: Option<&'static str>,
}

impl ServiceAccount {
    /// What units cost, as far as there are samples and units.
    #[allow(clippy::cast_precision_loss, reason = "statistics")]
    pub fn unit_costs(&self) -> Vec<UnitCost> {
        let (bytes, cipher) = self.application_bytes();
        let whole = self.connections_are_whole();
        let units = [
            (Unit::Handshake, self.handshake_count() as f64, None),
            (Unit::Turn, if whole { self.turns() } else { 0.0 }, None),
            (Unit::Megabyte, if whole { bytes } else { 0.0 }, cipher),
        ];
        let costs = units
            .into_iter()
            .filter_map(|(unit, count, cipher)| self.unit_cost(unit, count, cipher));
        costs.collect()
    }

    /// Whether the turns of a role are its requests: no connection is open that may speak HTTP/2,
    /// and those that have ended can hide next to no request.
    pub fn turns_are_requests(&self, role: Role) -> bool {
        let begun = self.roles.get(&role).map_or(0, |kept| kept.hellos.http2);
        let open = begun.saturating_sub(self.http2_from_before);
        let Some(kept) = self.connections.get(&role) else {
            return open == 0;
        };
        let hide_none = |turns| are_requests(turns, kept.hidden_requests);
        open <= kept.http2 && kept.turns().is_none_or(hide_none)
    }

    /// Whether turns and bytes of nearly all connections are known: not of those that
    /// are still open, or had been open before.
    #[allow(clippy::cast_precision_loss, reason = "a share")]
    pub(crate) fn connections_are_whole(&self) -> bool {
        let ended: u64 = self
            .connections
            .values()
            .map(ConnectionAccount::closed_count)
            .sum();
        let seen = self.connection_count();
        seen == 0 || ended as f64 >= ENOUGH_SEEN * seen as f64
    }

    #[allow(clippy::cast_precision_loss, reason = "statistics")]
    fn unit_cost(&self, unit: Unit, count: f64, cipher: Option<&'static str>) -> Option<UnitCost> {
        if count <= 0.0 || self.activities.samples() == 0 {
            return None;
        }
        let modes = [Mode::User, Mode::System];
        let keys = unit
            .activities()
            .iter()
            .flat_map(|&activity| modes.map(|mode| (activity, mode)));
        let (mut cpu, mut samples) = (Duration::ZERO, 0);
        for (activity, mode) in keys {
            let part = self.activities.part(activity, mode);
            cpu += part.cpu();
            samples += part.samples;
        }
        let seconds = cpu.as_secs_f64();
        Some(UnitCost {
            unit,
            count,
            seconds: seconds / count,
            limits: self.activities.limits(seconds).scaled(1.0 / count),
            samples,
            cipher,
        })
    }

    /// Turns as a server; of a service that is only a client, as that: what a proxy
    /// asks of others is part of its own answer.
    #[allow(clippy::cast_precision_loss, reason = "statistics")]
    fn turns(&self) -> f64 {
        let of = |role: Role| -> u64 {
            let kept = self.connections.get(&role);
            kept.map_or(Some(0), ConnectionAccount::turns)
                .unwrap_or_default()
        };
        let server = of(Role::Server);
        if server > 0 {
            server as f64
        } else {
            of(Role::Client) as f64
        }
    }

    /// Megabytes, and the cipher suite that carries nearly all.
    #[allow(clippy::cast_precision_loss, reason = "statistics")]
    fn application_bytes(&self) -> (f64, Option<&'static str>) {
        let mut by_cipher: BTreeMap<&'static str, f64> = BTreeMap::new();
        for (cipher, bytes) in self.roles.values().flat_map(|role| &role.application) {
            let sum = bytes.received.saturating_add(bytes.sent);
            *by_cipher.entry(cipher).or_default() += sum as f64;
        }
        let all: f64 = by_cipher.values().sum();
        let mut named = by_cipher.iter();
        let dominant = named.find(|(cipher, bytes)| {
            **bytes >= DOMINANT * all && **cipher != OTHER && **cipher != "unknown"
        });
        (all / 1e6, dominant.map(|(cipher, _)| *cipher))
    }
}

#[cfg(test)]
mod tests;
