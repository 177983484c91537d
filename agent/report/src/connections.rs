//! The TCP connections of a service, from its account.

use std::time::Duration;

use tlsprof_common::{Closer, Role};
use tlsprof_ledger::{Closed, ConnectionAccount, ServiceAccount};

use super::build::quantiles;
use super::model::{
    ClosedConnections, Connections, EphemeralPorts, EstimatedTurns, Service, TurnCount,
};

pub(super) fn of(account: &ServiceAccount, now: Duration) -> Vec<Connections> {
    let roles = account.connections.iter();
    roles
        .map(|(role, kept)| Connections {
            turns_are_requests: Some(account.turns_are_requests(*role)),
            ..connections(*role, kept, now)
        })
        .collect()
}

pub(super) fn estimated_turns(account: &ServiceAccount) -> Vec<EstimatedTurns> {
    let roles = account.connections.iter();
    let roles = roles.filter(|(_, kept)| kept.estimated_turns.connections > 0);
    roles
        .map(|(role, kept)| EstimatedTurns {
            role: role.label().into(),
            count: kept.estimated_turns.turns,
            connections: kept.estimated_turns.connections,
            count_margin: kept.estimated_turns.margin(),
        })
        .collect()
}

pub(super) fn ephemeral_ports(account: &ServiceAccount, now: Duration) -> Option<EphemeralPorts> {
    let ports = account.ephemeral_ports(now)?;
    Some(EphemeralPorts {
        used: ports.used,
        available: ports.available,
    })
}

fn connections(role: Role, account: &ConnectionAccount, now: Duration) -> Connections {
    Connections {
        role: role.label().into(),
        opened: account.opened,
        closed: account
            .closed
            .iter()
            .map(|(closer, closed)| closed_connections(*closer, closed))
            .collect(),
        duration: quantiles(&account.duration),
        bytes_received: account.bytes_received,
        bytes_sent: account.bytes_sent,
        time_wait_created: account.time_wait_created,
        time_wait_standing: account.time_wait_standing(now),
        turns_are_requests: None,
    }
}

fn closed_connections(closer: Closer, closed: &Closed) -> ClosedConnections {
    let classes = closed.turns.classes();
    ClosedConnections {
        closed_by: closer.label().into(),
        count: closed.count,
        reset: closed.reset,
        turns: classes
            .map(|(from, to, connections)| TurnCount {
                from,
                to,
                connections,
            })
            .collect(),
    }
}

impl Connections {
    /// How many ended.
    pub fn closed_count(&self) -> u64 {
        self.closed.iter().map(|closed| closed.count).sum()
    }

    /// Turns of those that ended, by the least number of their class.
    pub(crate) fn turn_count(&self) -> u64 {
        let classes = self.closed.iter().flat_map(|closed| &closed.turns);
        classes.fold(0, |sum, one| {
            sum.saturating_add(u64::from(one.from).saturating_mul(one.connections))
        })
    }

    /// The way to end and the number of turns that most of them have in common;
    /// None where no turns were counted.
    pub fn peak(&self) -> Option<(&ClosedConnections, TurnCount)> {
        let all = self
            .closed
            .iter()
            .flat_map(|closed| closed.turns.iter().map(move |turns| (closed, *turns)));
        all.max_by_key(|(_, turns)| turns.connections)
    }
}

impl Service {
    /// How many TCP connections were opened, or had been open before and ended.
    pub fn connection_count(&self) -> u64 {
        let opened = self.connections.iter().map(|one| one.opened);
        opened.sum::<u64>() + self.connections_from_before
    }
}
