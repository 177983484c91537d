//! Requests of a service: those that the load tool counted, else turns where each is one.

use super::model::{Requests, Role, Service, Unit, UnitCost};

/// A load tool that counted fewer than this share of the turns was not the only client.
const ALL: f64 = 0.95;
/// Turns are known of connections that ended, and where these are at least this share of all: as
/// the ledger has it.
pub(super) const ENOUGH_SEEN: f64 = 0.9;

/// Requests of a service.
pub struct Known<'a> {
    /// How many.
    pub count: f64,
    /// Who counted them; None where they are turns.
    pub counted_by: Option<&'a str>,
}

impl Service {
    /// Whether the load may have made so many requests to it, by its turns.
    pub(super) fn can_have(&self, requests: &Requests) -> bool {
        let count = requests.count as f64;
        let turns = self.turns().filter(|_| self.turns_are_requests());
        // More may be: requests that are sent one after the other without waiting are one turn.
        let fits = turns.is_none_or(|turns| ALL * turns <= count);
        fits || requests.counted_by == "--requests"
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
    #![allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts"
    )]

    use super::super::model::Report;
    use super::*;
    use crate::{Facts, build, sample};

    #[test]
    fn the_count_of_a_load_tool_is_that_of_its_target_alone() {
        let mut facts = sample::facts();
        let turns = sample::report().services[0].turns().unwrap();
        facts.requests = Some(Requests::new(turns as u64, "wrk"));
        let report = |facts: &Facts| build(facts.clone(), &sample::ledger());
        let counted = |report: &Report| -> Vec<String> {
            let services = report.services.iter();
            let counted = services.filter(|one| one.requests.is_some());
            counted.map(|one| one.service_name.clone()).collect()
        };
        assert!(counted(&report(&facts)).is_empty());
        for name in ["nginx.service", "sshd.service"] {
            let mut facts = facts.clone();
            facts.services.get_mut(name).unwrap().is_target = true;
            assert_eq!(counted(&report(&facts)), [name]);
        }
    }

    #[test]
    fn a_load_tool_that_counted_less_was_not_the_only_client() {
        let service = |are_requests| {
            let mut service = sample::report().services.remove(0);
            for one in &mut service.connections {
                one.turns_are_requests = Some(are_requests);
            }
            service
        };
        let (plain, multiplexed) = (service(true), service(false));
        let turns = plain.turns().unwrap();
        for (share, fits) in [(0.94, false), (0.96, true), (16.0, true)] {
            let count = (share * turns) as u64;
            let by_tool = Requests::new(count, "wrk");
            assert_eq!(plain.can_have(&by_tool), fits, "{share}");
            assert!(multiplexed.can_have(&by_tool), "{share}");
            assert!(plain.can_have(&Requests::new(count, "--requests")));
        }
    }
}
