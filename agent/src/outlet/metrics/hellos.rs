//! What peers say in clear, and what TLS connections carry, as counters.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use crate::ledger::{ApplicationBytes, Counts, HelloAccount, Ledger, RoleAccount, ServiceAccount};

use super::collector::{Labels, Writer};
use super::sources::accounts;

pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_hellos",
        "TLS handshakes of which the ClientHello was read.",
    )?;
    for (labels, account) in accounts(ledger) {
        metric.count(&labels, account.hellos.hellos)?;
    }
    attempts(encoder, ledger)?;
    for family in &FAMILIES {
        counts(encoder, ledger, family)?;
    }
    alerts(encoder, ledger)?;
    application(encoder, ledger)
}

/// One counter by names.
struct Family {
    name: &'static str,
    help: &'static str,
    label: &'static str,
    of: fn(&HelloAccount) -> &Counts,
}

const FAMILIES: [Family; 5] = [
    Family {
        name: "tlsprof_offered_versions",
        help: "ClientHellos that offered a TLS version.",
        label: "version",
        of: |account| &account.versions,
    },
    Family {
        name: "tlsprof_offered_groups",
        help: "ClientHellos that offered a key exchange group.",
        label: "group",
        of: |account| &account.groups,
    },
    Family {
        name: "tlsprof_hello_features",
        help: "ClientHellos with a feature.",
        label: "feature",
        of: |account| &account.features,
    },
    Family {
        name: "tlsprof_application_protocols",
        help: "Application protocols (ALPN) that a server chose in clear, up to TLS 1.2.",
        label: "protocol",
        of: |account| &account.protocols,
    },
    Family {
        name: "tlsprof_tls_upgrades",
        help: "TLS handshakes after a protocol switched to TLS (STARTTLS).",
        label: "protocol",
        of: |account| &account.upgrades,
    },
];

fn counts(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger, family: &Family) -> fmt::Result {
    let mut metric = Writer::counter(encoder, family.name, family.help)?;
    for ([name, role], account) in accounts(ledger) {
        for (value, count) in (family.of)(&account.hellos) {
            let labels: Labels<'_, 3> = [name, role, (family.label, value)];
            metric.count(&labels, *count)?;
        }
    }
    Ok(())
}

fn attempts(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_resumption_attempts",
        "Attempts of clients to take up an earlier TLS session, by means and by what became of them.",
    )?;
    for ([name, role], account) in accounts(ledger) {
        for ((attempt, means), count) in &account.hellos.attempts {
            let labels: Labels<'_, 4> =
                [name, role, ("means", means), ("attempt", attempt.label())];
            metric.count(&labels, *count)?;
        }
    }
    Ok(())
}

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

fn alerts(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_alerts",
        "TLS alerts that travelled in clear, during handshakes.",
    )?;
    for (name, service) in ledger.services() {
        let sums = over_roles(service, |account, sums: &mut BTreeMap<_, u64>| {
            for (alert, count) in &account.hellos.alerts {
                *sums.entry(*alert).or_default() += count;
            }
        });
        for ((sent, description), count) in sums {
            let labels: Labels<'_, 3> = [
                ("service_name", name),
                ("direction", if sent { "sent" } else { "received" }),
                ("description", description),
            ];
            metric.count(&labels, count)?;
        }
    }
    Ok(())
}

fn application(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_application_bytes",
        "Payload of TLS connections that ended, after their handshakes, records and all, in bytes.",
    )?;
    for (name, service) in ledger.services() {
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
        for (cipher, bytes) in sums {
            for (direction, value) in [("received", bytes.received), ("sent", bytes.sent)] {
                let labels: Labels<'_, 3> = [
                    ("service_name", name),
                    ("direction", direction),
                    ("cipher", cipher),
                ];
                metric.count(&labels, value)?;
            }
        }
    }
    Ok(())
}
