//! What clients offered and servers chose, as their hellos say it in clear.
//!
//! Every key is a name of a registry, or a number that has one, or `other`: so the maps are
//! bounded whatever peers send.

use std::collections::BTreeMap;

use tlsprof_common::Role;
use tlsprof_evidence::Handshake;
use tlsprof_evidence::hello::{Attempt, Direction, Facts, Group, Upgrade, Version};

use super::since::sums;
use super::{Chains, Consequences, Counts, Origins};

/// The hellos of one service in one role.
#[derive(Clone, Debug, Default)]
pub struct HelloAccount {
    /// Handshakes of which the ClientHello was read.
    pub hellos: u64,
    /// Attempts to take up an earlier session, and by which means: that which
    /// was accepted, or else that which was offered (`none`, `session_id`,
    /// `ticket`, `psk`).
    pub attempts: BTreeMap<(Attempt, &'static str), u64>,
    /// Where the sessions came from that clients brought to the service.
    pub origins: Origins,
    /// ClientHellos that offered a version.
    versions: BTreeMap<Version, u64>,
    /// ClientHellos that offered a key exchange group.
    groups: BTreeMap<Group, u64>,
    /// ClientHellos that had a feature: see [`FEATURES`].
    pub features: Counts,
    /// Application protocols (ALPN) that servers chose in clear, up to TLS 1.2.
    pub protocols: Counts,
    /// Handshakes of connections that speak HTTP/2, or may.
    pub(crate) http2: u64,
    /// Protocols that switched to TLS (STARTTLS).
    pub upgrades: Counts,
    /// Alerts in clear: true for those that the service sent, and what they say.
    pub alerts: BTreeMap<(bool, &'static str), u64>,
    /// Certificates of the service that were seen.
    pub chains: Chains,
    /// What came of them.
    pub consequences: Consequences,
}

sums!(
    HelloAccount: hellos, attempts, origins, versions, groups, features, protocols, http2, upgrades, alerts, chains,
    consequences
);

/// Names of [`HelloAccount::features`]: the client names the host (SNI), offers a
/// post-quantum group, sends early data; the server asked for another key share
/// (HelloRetryRequest); a PROXY protocol header came before.
pub const FEATURES: [&str; 5] = [
    "server_name",
    "post_quantum",
    "early_data",
    "hello_retry_request",
    "proxy_protocol",
];

impl HelloAccount {
    /// ClientHellos that offered a version, by its name.
    pub fn offered_versions(&self) -> Counts {
        by_name(&self.versions, Version::name)
    }

    /// ClientHellos that offered a key exchange group, by its name.
    pub fn offered_groups(&self) -> Counts {
        by_name(&self.groups, Group::name)
    }

    pub(super) fn record(&mut self, handshake: &Handshake) {
        let Some(facts) = handshake.hello.as_deref() else {
            return;
        };
        self.consequences.record(handshake, facts);
        self.chains.record(handshake, facts);
        self.http2 += u64::from(facts.may_be_http2());
        let server = handshake.role == Role::Server;
        for (direction, _, alert) in &facts.alerts {
            let sent = (*direction == Direction::FromServer) == server;
            *self.alerts.entry((sent, alert.name())).or_default() += 1;
        }
        if facts.offer.is_some() {
            self.record_offer(facts);
        }
        let protocol = facts.choice.as_ref().and_then(|choice| choice.protocol);
        count(&mut self.protocols, protocol);
        count(
            &mut self.upgrades,
            facts.opening.upgrade.map(Upgrade::label),
        );
    }

    fn record_offer(&mut self, facts: &Facts) {
        let Some(offer) = &facts.offer else {
            return;
        };
        self.hellos += 1;
        self.origins.record(facts);
        let attempt = facts.attempt();
        let means = match attempt {
            Attempt::NotOffered => "none",
            Attempt::Accepted => facts.resumption().label(),
            Attempt::Refused | Attempt::Unknown => facts.offered().label(),
        };
        *self.attempts.entry((attempt, means)).or_default() += 1;
        let versions = offer.versions.iter().map(|version| version.named());
        count_numbers(&mut self.versions, versions, Version::OTHER);
        let groups = offer.groups.iter().map(|group| group.named());
        count_numbers(&mut self.groups, groups, Group::OTHER);
        let has = [
            offer.server_name,
            offer.post_quantum(),
            offer.early_data,
            facts.retry.is_some(),
            facts.opening.proxy_protocol,
        ];
        let features = FEATURES.into_iter().zip(has);
        count(
            &mut self.features,
            features.filter(|(_, has)| *has).map(|(name, _)| name),
        );
    }
}

fn by_name<T: Copy>(counts: &BTreeMap<T, u64>, name: impl Fn(T) -> &'static str) -> Counts {
    let counts = counts.iter();
    counts.map(|(one, count)| (name(*one), *count)).collect()
}

/// Counts what one client said: those without a name together.
fn count_numbers<T: Ord>(
    counts: &mut BTreeMap<T, u64>,
    numbers: impl Iterator<Item = T>,
    other: T,
) {
    let mut others = false;
    for number in numbers {
        if number == other {
            others = true;
        } else {
            *counts.entry(number).or_default() += 1;
        }
    }
    if others {
        *counts.entry(other).or_default() += 1;
    }
}

fn count(counts: &mut Counts, names: impl IntoIterator<Item = &'static str>) {
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
}
