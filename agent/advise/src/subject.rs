//! The service that rules look at, and what they have in common.

use std::time::Duration;

use tlsprof_common::units::{count, percent, share_of_cpu};
use tlsprof_common::{Outcome, Role};
use tlsprof_ledger::{ConnectionAccount, HandshakeKey, HandshakeSum, RoleAccount, ServiceAccount};

use super::setting::{Setting, Thresholds};
use super::{CostSource, Costs, Hybrid, Range, Saving, Server};

/// A service under the eyes of the rules.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    pub name: &'a str,
    pub server: Server,
    pub hybrid: Hybrid,
    pub(crate) account: &'a ServiceAccount,
    /// The ledger's clock.
    pub now: Duration,
    pub(crate) setting: Setting,
    pub costs: &'a Costs<'a>,
    pub(crate) thresholds: Thresholds,
}

/// Handshakes of a kind together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub count: u64,
    /// Those of them whose CPU time is a lower bound.
    pub offloaded: u64,
    /// CPU time, in seconds.
    pub cpu: f64,
}

impl Tally {
    /// CPU time of one, in seconds; 0 where there is none.
    pub(crate) fn each(self) -> f64 {
        match self.count {
            0 => 0.0,
            count => self.cpu / count as f64,
        }
    }
}

impl<'a> Subject<'a> {
    pub fn role(&self, role: Role) -> Option<&'a RoleAccount> {
        self.account.roles.get(&role)
    }

    pub fn connections(&self, role: Role) -> Option<&'a ConnectionAccount> {
        self.account.connections.get(&role)
    }

    /// Handshakes of a kind.
    pub fn handshakes(&self, wanted: impl Fn(&HandshakeKey) -> bool) -> Tally {
        let those = self
            .account
            .handshakes
            .iter()
            .filter(|(key, _)| wanted(key));
        those.fold(Tally::default(), |tally, (_, sum)| tally.plus(sum))
    }

    /// Completed handshakes in a role.
    pub(crate) fn completed(&self, role: Role) -> Tally {
        self.handshakes(|key| key.role == role && key.outcome == Outcome::Completed)
    }

    /// CPU time of the service in seconds. Not less than that of its handshakes: see
    /// [`agrees`](Self::agrees).
    pub fn cpu(&self) -> f64 {
        let all = self.account.cpu().as_secs_f64();
        all.max(self.account.handshake_cpu().as_secs_f64())
    }

    /// Whether the CPU time of the service has room for that of its handshakes; for the least that it
    /// may be, where it is an estimate.
    pub(crate) fn agrees(&self) -> bool {
        let roles = self.account.roles.values();
        let margin: f64 = roles.map(|role| role.estimated.cpu_margin()).sum();
        let least = self.account.handshake_cpu().as_secs_f64() - margin;
        least <= 0.0 || share_of_cpu(least, self.account.cpu().as_secs_f64()).is_some()
    }

    /// Whether so many handshakes or connections are enough to go on.
    pub(crate) const fn enough(&self, count: u64) -> bool {
        count >= self.thresholds.min_handshakes
    }

    /// Whether so many CPU seconds saved are worth a change.
    pub(crate) fn worth(&self, seconds: f64) -> bool {
        let cpu = self.cpu();
        cpu > 0.0 && seconds / cpu >= self.thresholds.min_saving
    }

    /// A saving of so many CPU seconds. Not below zero: a rule fires on a saving.
    pub(crate) fn saving(&self, cpu: Range, source: CostSource, method: String) -> Saving {
        let cpu = cpu.map(|seconds| seconds.max(0.0));
        Saving {
            cpu,
            share: self.share(cpu),
            source,
            method,
            is_lower_bound: false,
            variants: Vec::new(),
        }
    }

    /// CPU seconds as a share (0 to 1) of the service's.
    pub fn share(&self, cpu: Range) -> Range {
        let all = self.cpu();
        cpu.map(|seconds| {
            if all > 0.0 {
                (seconds / all).clamp(0.0, 1.0)
            } else {
                0.0
            }
        })
    }

    /// CPU seconds in words, as a share of the service's.
    pub(crate) fn share_in_words(&self, seconds: f64) -> String {
        match self.agrees() {
            true => percent(self.share(Range::around(seconds, 0.0)).likely),
            false => "an unknown share".to_owned(),
        }
    }
}

/// Whether others connect to a service: one that only connects to others is a client, such as a
/// load generator, and to be cheap is not its task.
pub fn is_server(account: &ServiceAccount) -> bool {
    let connections = account.connections.get(&Role::Server);
    let is_completed =
        |key: &HandshakeKey| key.role == Role::Server && key.outcome == Outcome::Completed;
    connections.is_some_and(|kept| kept.opened > 0) || account.handshakes.keys().any(is_completed)
}

impl Tally {
    fn plus(self, sum: &HandshakeSum) -> Self {
        Self {
            count: self.count + sum.count,
            offloaded: self.offloaded + sum.offloaded,
            cpu: self.cpu + sum.cpu.as_secs_f64(),
        }
    }
}

/// So many of the clients whose `ClientHello` was read, in words.
pub(crate) fn clients(number: u64, hellos: u64) -> String {
    if number == hellos {
        return format!("all {} clients whose ClientHello was read", count(number));
    }
    format!(
        "{} of {} clients whose ClientHello was read ({})",
        count(number),
        count(hellos),
        percent(number as f64 / hellos as f64)
    )
}

/// A count that shares were taken of, as a whole number.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count"
)]
pub(crate) fn whole(count: f64) -> u64 {
    count.round() as u64
}
