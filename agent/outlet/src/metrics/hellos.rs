//! What peers say in clear, and what TLS connections carry, as counters.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use tlsprof_ledger::{ApplicationBytes, Counts, HelloAccount, Ledger, RoleAccount, ServiceAccount};

use super::families::{
    ALERTS, APPLICATION_BYTES, APPLICATION_PROTOCOLS, Family, HELLO_FEATURES, HELLOS,
    OFFERED_GROUPS, OFFERED_VERSIONS, RESUMPTION_ATTEMPTS, TLS_UPGRADES,
};
use super::rows::write;
use super::sources::accounts;

pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let hellos = accounts(ledger).map(|(labels, account)| (labels, account.hellos.hellos));
    write(encoder, &HELLOS, hellos)?;
    let attempts = accounts(ledger).flat_map(|([name, role], account)| {
        let attempts = account.hellos.attempts.iter();
        attempts
            .map(move |((attempt, means), count)| ([name, role, *means, attempt.label()], *count))
    });
    write(encoder, &RESUMPTION_ATTEMPTS, attempts)?;
    for (family, of) in &BY_NAME {
        let counts = accounts(ledger).flat_map(|([name, role], account)| {
            let counts = of(&account.hellos).into_iter();
            counts.map(move |(value, count)| ([name, role, value], count))
        });
        write(encoder, family, counts)?;
    }
    let alerts = ledger.services().flat_map(alerts);
    write(encoder, &ALERTS, alerts)?;
    let application = ledger.services().flat_map(application);
    write(encoder, &APPLICATION_BYTES, application)
}

/// A counter by a name that peers sent.
type Named = (Family<3>, fn(&HelloAccount) -> Counts);

const BY_NAME: [Named; 5] = [
    (OFFERED_VERSIONS, HelloAccount::offered_versions),
    (OFFERED_GROUPS, HelloAccount::offered_groups),
    (HELLO_FEATURES, |account| account.features.clone()),
    (APPLICATION_PROTOCOLS, |account| account.protocols.clone()),
    (TLS_UPGRADES, |account| account.upgrades.clone()),
];

/// Adds up over both roles.
fn over_roles<K: Ord, V: Default>(
    service: &ServiceAccount,
    mut add: impl FnMut(&RoleAccount, &mut BTreeMap<K, V>),
) -> BTreeMap<K, V> {
    let mut sums = BTreeMap::new();
    for account in service.roles.values() {
        add(account, &mut sums);
    }
    sums
}

fn alerts<'a>(
    (name, service): (&'a str, &ServiceAccount),
) -> impl Iterator<Item = ([&'a str; 3], u64)> {
    let sums = over_roles(service, |account, sums: &mut BTreeMap<_, u64>| {
        for (alert, count) in &account.hellos.alerts {
            *sums.entry(*alert).or_default() += count;
        }
    });
    sums.into_iter().map(move |((sent, description), count)| {
        let direction = if sent { "sent" } else { "received" };
        ([name, direction, description], count)
    })
}

fn application<'a>(
    (name, service): (&'a str, &ServiceAccount),
) -> impl Iterator<Item = ([&'a str; 3], u64)> {
    let sums = over_roles(
        service,
        |account, sums: &mut BTreeMap<_, ApplicationBytes>| {
            for (cipher, bytes) in &account.application {
                let sum = sums.entry(*cipher).or_default();
                sum.received += bytes.received;
                sum.sent += bytes.sent;
            }
        },
    );
    sums.into_iter().flat_map(move |(cipher, bytes)| {
        [
            ([name, "received", cipher], bytes.received),
            ([name, "sent", cipher], bytes.sent),
        ]
    })
}
