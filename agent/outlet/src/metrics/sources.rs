//! Which source showed handshakes, and how far the sources agree.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::DescriptorEncoder;

use tlsprof_common::{Role, Source};
use tlsprof_ledger::{HandshakeKey, HandshakeSum, Ledger, RoleAccount, ServiceAccount};

use super::families::{
    AGREEMENT_CPU, AGREEMENT_HANDSHAKES, AGREEMENT_STEP_CPU, HANDSHAKE_FLIGHT_CPU,
    HANDSHAKES_BY_SOURCE, HANDSHAKES_ESTIMATED, HANDSHAKES_OFFLOADED,
};
use super::rows::write;

/// Sources of the CPU time of steps.
const STEP_SOURCES: [&str; 2] = ["library", "samples"];

pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let by_source = ledger.services().flat_map(|(name, service)| {
        service.roles.keys().flat_map(move |role| {
            let of = |source: Source| [name, role.label(), source.label()];
            Source::ALL.map(|source| (of(source), count(service, *role, source)))
        })
    });
    write(encoder, &HANDSHAKES_BY_SOURCE, by_source)?;
    let offloaded = accounts(ledger).map(|(labels, account)| (labels, account.socket.offloaded));
    write(encoder, &HANDSHAKES_OFFLOADED, offloaded)?;
    let estimated =
        accounts(ledger).map(|(labels, account)| (labels, account.estimated.handshakes));
    write(encoder, &HANDSHAKES_ESTIMATED, estimated)?;
    let flights = accounts(ledger).flat_map(|([name, role], account)| {
        [
            ([name, role, "first"], account.socket.first_flight),
            ([name, role, "last"], account.socket.last_flight),
        ]
    });
    write(encoder, &HANDSHAKE_FLIGHT_CPU, flights)?;
    let both = accounts(ledger).map(|(labels, account)| (labels, account.agreement.handshakes));
    write(encoder, &AGREEMENT_HANDSHAKES, both)?;
    let agreement = accounts(ledger).flat_map(|([name, role], account)| {
        let cpu = [account.agreement.library, account.agreement.socket];
        let labels = Source::ALL.map(|source| [name, role, source.label()]);
        labels.into_iter().zip(cpu)
    });
    write(encoder, &AGREEMENT_CPU, agreement)?;
    let steps: Vec<(&str, String, [Duration; 2])> = ledger
        .services()
        .flat_map(|(name, service)| {
            let steps = service.step_agreement();
            steps.map(move |(steps, cpu)| (name, steps.label(), cpu))
        })
        .collect();
    let steps = steps.iter().flat_map(|(name, step, cpu)| {
        let labels = STEP_SOURCES.map(|source| [*name, step.as_str(), source]);
        labels.into_iter().zip(*cpu)
    });
    write(encoder, &AGREEMENT_STEP_CPU, steps)
}

/// The labels that every account has, and the account.
pub(super) fn accounts(ledger: &Ledger) -> impl Iterator<Item = ([&str; 2], &RoleAccount)> {
    ledger.services().flat_map(|(name, service)| {
        let roles = service.roles.iter();
        roles.map(move |(role, account)| ([name, role.label()], account))
    })
}

fn count(service: &ServiceAccount, role: Role, source: Source) -> u64 {
    let those =
        |(key, _): &(&HandshakeKey, &HandshakeSum)| key.role == role && key.source == source;
    let sums = service.handshakes.iter().filter(those);
    sums.map(|(_, sum)| sum.count).sum()
}
