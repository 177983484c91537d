//! Requests of a service: those that the load tool counted, else turns where each is one.

use super::model::{Requests, Role, Service, Unit, UnitCost};

/// A load tool that counted fewer than this share of the turns was not the only client.
const ALL: f64 = 0.95;

/// Requests of a service.
pub struct Known<'a> {
    /// How many.
    pub count: f64,
    /// Who counted them; None where they are turns.
    pub counted_by: Option<&'a str>,
}

/// Gives the requests of the load to the server that it was for: the first one.
pub(super) fn book(services: &mut [Service], requests: Option<Requests>) {
    let Some(server) = services.iter_mut().find(|service| service.is_server()) else {
        return;
    };
    let fits = |requests: &Requests| {
        let turns = server.turns().filter(|_| server.turns_are_requests());
        let other_clients = turns.is_some_and(|turns| (requests.count as f64) < ALL * turns);
        requests.counted_by == "--requests" || !other_clients
    };
    server.requests = requests.filter(fits);
}

impl Service {
    fn is_server(&self) -> bool {
        let handshakes = self.handshakes.iter().map(|group| &group.role);
        let opened = self.connections.iter().filter(|one| one.opened > 0);
        let mut roles = handshakes.chain(opened.map(|one| &one.role));
        roles.any(|role| *role == Role::Server)
    }

    /// Whether each turn of the role that turns are counted for is one request.
    pub fn turns_are_requests(&self) -> bool {
        let of = |role| self.connections.iter().find(|one| one.role == role);
        let counted = of(Role::Server)
            .filter(|one| one.turn_count() > 0)
            .or_else(|| of(Role::Client));
        counted.is_none_or(|one| one.turns_are_requests != Some(false))
    }

    /// Turns, where nearly all connections were seen whole.
    fn turns(&self) -> Option<f64> {
        let is_turn = |cost: &&UnitCost| cost.unit == Unit::Turn && cost.count >= 1.0;
        self.unit_costs.iter().find(is_turn).map(|cost| cost.count)
    }

    /// Its requests; None where they are not known.
    pub fn known_requests(&self) -> Option<Known<'_>> {
        if let Some(requests) = &self.requests {
            return Some(Known {
                count: requests.count as f64,
                counted_by: Some(&requests.counted_by),
            });
        }
        let turns = self.turns().filter(|_| self.turns_are_requests());
        turns.map(|count| Known {
            count,
            counted_by: None,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::super::model::Report;
    use super::*;
    use crate::sample;

    fn booked(count: u64, by: &str, are_requests: bool) -> Report {
        let mut report = sample::report();
        for one in report
            .services
            .iter_mut()
            .flat_map(|one| &mut one.connections)
        {
            one.turns_are_requests = Some(are_requests);
        }
        book(&mut report.services, Some(Requests::new(count, by)));
        report
    }

    #[test]
    fn the_count_of_a_load_tool_is_that_of_the_first_server_alone() {
        let report = booked(10_000_000, "wrk", true);
        let counts = report.services.iter().map(|one| one.requests.is_some());
        assert_eq!(counts.filter(|known| *known).count(), 1);
        assert!(report.services[0].requests.is_some());
    }

    #[test]
    fn a_load_tool_that_was_not_the_only_client_does_not_count() {
        let turns = sample::report().services[0].turns().unwrap();
        assert!(turns > 100.0);
        assert_eq!(booked(10, "wrk", true).services[0].requests, None);
        assert!(booked(10, "wrk", false).services[0].requests.is_some());
        assert!(
            booked(10, "--requests", true).services[0]
                .requests
                .is_some()
        );
    }
}
