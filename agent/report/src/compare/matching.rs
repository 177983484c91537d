//! Which services of several groups are the same.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Absence, MatchedBy};
use super::runs::{LabelledRuns, Pair};
use crate::model::{Role, Service};

/// Services that are taken for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matched {
    /// Its name in each group; None where it is not.
    pub names: Vec<Option<String>>,
    /// How it was found.
    pub(crate) by: MatchedBy,
}

/// What is known of a service in a group.
#[derive(Clone, Debug, Default)]
struct Known {
    ports: BTreeSet<u16>,
    silent: bool,
    client: bool,
}

/// Services by group, and why some are left out.
pub(crate) struct Matching {
    /// Services of two groups or more.
    pub(crate) matched: Vec<Matched>,
    /// Name, positions of the groups that have it, reason.
    pub left_out: Vec<(String, Vec<usize>, Absence)>,
}

/// Matches services by the user's pairs, by name, then by port where the names differ.
/// Silent services and mere clients are left out unless they are named.
pub(crate) fn matching(groups: &[LabelledRuns], pairs: &[Pair]) -> Matching {
    let known: Vec<BTreeMap<&str, Known>> = groups.iter().map(known).collect();
    let mut matching = Matching {
        matched: Vec::new(),
        left_out: Vec::new(),
    };
    let names = if pairs.is_empty() {
        let mut order: Vec<&str> = groups.iter().flat_map(names).collect();
        let mut seen = BTreeSet::new();
        order.retain(|name| seen.insert(*name));
        order.into_iter().map(Pair::same).collect()
    } else {
        combined(pairs)
    };
    for pair in names {
        let found: Vec<Option<&str>> = known
            .iter()
            .enumerate()
            .map(|(at, services)| {
                let wanted = if at == 0 {
                    vec![pair.first.as_str()]
                } else {
                    pair.candidates()
                };
                wanted.into_iter().find(|name| services.contains_key(name))
            })
            .collect();
        let those = || {
            found
                .iter()
                .zip(&known)
                .filter_map(|(name, of)| of.get((*name)?))
        };
        let there: Vec<usize> = positions(&found);
        let reason = if pairs.is_empty() && those().all(|one| one.silent) {
            Some(Absence::Silent)
        } else if pairs.is_empty() && those().all(|one| one.client || one.silent) {
            Some(Absence::OnlyAClient)
        } else if there.len() < 2 || there.first() != Some(&0) {
            Some(Absence::OnlyThere)
        } else {
            None
        };
        match reason {
            Some(reason) => matching.left_out.push((pair.first.clone(), there, reason)),
            None => matching.matched.push(Matched {
                names: found.iter().map(|name| name.map(str::to_owned)).collect(),
                by: if pair.others.is_empty() {
                    MatchedBy::Name
                } else {
                    MatchedBy::Option
                },
            }),
        }
    }
    if pairs.is_empty() {
        by_port(&mut matching, &known);
    }
    matching
}

/// Pairs of one first name are one service: it has a name in each group.
fn combined(pairs: &[Pair]) -> Vec<Pair> {
    let mut all: Vec<Pair> = Vec::new();
    for pair in pairs {
        match all.iter_mut().find(|known| known.first == pair.first) {
            Some(known) => known.others.extend(pair.others.iter().cloned()),
            None => all.push(pair.clone()),
        }
    }
    all
}

/// Where a service of the first group is not found by its name, another that is left out there
/// is taken for it if both listen on one port.
fn by_port(matching: &mut Matching, known: &[BTreeMap<&str, Known>]) {
    let Matching { matched, left_out } = matching;
    let lone = left_out
        .iter()
        .filter(|(_, places, reason)| *reason == Absence::OnlyThere && places.first() == Some(&0));
    let of_first = lone.map(|(name, ..)| Matched {
        names: known
            .iter()
            .enumerate()
            .map(|(at, _)| (at == 0).then(|| name.clone()))
            .collect(),
        by: MatchedBy::Port,
    });
    matched.extend(of_first);
    for service in &mut *matched {
        fill(service, left_out, known);
    }
    matched.retain(|one| one.names.iter().flatten().count() > 1);
    left_out.retain(|(name, places, _)| {
        let is_matched = |one: &Matched| one.names.first() == Some(&Some(name.clone()));
        !places.is_empty() && !matched.iter().any(is_matched)
    });
}

/// Takes what is left out, at the places where the service is not, if it shares a port with it.
fn fill(
    service: &mut Matched,
    left_out: &mut [(String, Vec<usize>, Absence)],
    known: &[BTreeMap<&str, Known>],
) {
    let of = |at: usize, name: &str| known.get(at).and_then(|of| of.get(name));
    let first = service.names.first().and_then(Option::as_deref);
    let Some(first) = first.and_then(|name| of(0, name)) else {
        return;
    };
    let empty = service.names.iter_mut().enumerate();
    for (at, place) in empty.filter(|(_, place)| place.is_none()) {
        let shares = |name: &str| {
            let serves = of(at, name).filter(|one| !one.silent && !one.client);
            serves.is_some_and(|one| !one.ports.is_disjoint(&first.ports))
        };
        let mut others = left_out.iter_mut();
        let other = others.find(|(name, places, reason)| {
            *reason == Absence::OnlyThere && places.contains(&at) && shares(name)
        });
        if let Some((name, places, _)) = other {
            places.retain(|other| *other != at);
            *place = Some(name.clone());
            service.by = MatchedBy::Port;
        }
    }
}

fn positions(found: &[Option<&str>]) -> Vec<usize> {
    let places = found.iter().enumerate();
    places.filter_map(|(at, name)| name.map(|_| at)).collect()
}

fn names(group: &LabelledRuns) -> impl Iterator<Item = &str> {
    let services = group.runs.iter().flat_map(|run| &run.report.services);
    services.map(|service| service.service_name.as_str())
}

fn known(group: &LabelledRuns) -> BTreeMap<&str, Known> {
    let mut all: BTreeMap<&str, Known> = BTreeMap::new();
    for service in group.runs.iter().flat_map(|run| &run.report.services) {
        let (silent, client) = (is_silent(service), is_client(service));
        let name = service.service_name.as_str();
        let one = all.entry(name).or_insert_with(|| Known {
            silent,
            client,
            ports: BTreeSet::new(),
        });
        one.silent &= silent;
        one.client &= client || silent;
        one.ports.extend(&service.ports);
    }
    all
}

fn is_silent(service: &Service) -> bool {
    service.handshakes.iter().all(|group| group.count == 0)
        && service.connections.iter().all(|one| one.opened == 0)
}

fn is_client(service: &Service) -> bool {
    super::reading::Reading::new(service, 0.0).role() == Role::Client
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "tests")]

    use super::*;
    use crate::compare::sample::group;
    use crate::model::Report;
    use crate::sample;

    /// A report in which these services listen on these ports.
    fn report(services: &[(&str, &[u16])]) -> Report {
        let mut report = sample::report();
        let nginx = report.services[0].clone();
        let services = services.iter().map(|(name, ports)| Service {
            service_name: (*name).to_owned(),
            ports: ports.to_vec(),
            ..nginx.clone()
        });
        report.services = services.collect();
        report
    }

    /// Names in each report, and how they were matched; then what is left out, and where.
    fn matched(reports: &[&[(&str, &[u16])]]) -> (Vec<String>, Vec<String>) {
        let groups: Vec<LabelledRuns> = reports
            .iter()
            .map(|services| group("a", vec![report(services)]))
            .collect();
        let matching = matching(&groups, &[]);
        let matched = matching.matched.iter().map(|one| {
            let names = one.names.iter().map(|name| name.as_deref().unwrap_or("-"));
            let names: Vec<&str> = names.collect();
            format!("{} by {}", names.join(" "), one.by.label())
        });
        let left_out = matching.left_out.iter();
        let left_out = left_out.map(|(name, places, _)| format!("{name} {places:?}"));
        (matched.collect(), left_out.collect())
    }

    const HTTPS: &[u16] = &[443];

    #[test]
    fn a_service_with_another_name_in_several_reports_is_matched_by_port() {
        let (nginx, haproxy) = (("nginx", HTTPS), ("haproxy", HTTPS));
        let (found, left) = matched(&[&[nginx], &[haproxy], &[haproxy]]);
        assert_eq!(found, ["nginx haproxy haproxy by port"]);
        assert!(left.is_empty());
        let (found, left) = matched(&[&[nginx], &[nginx], &[haproxy]]);
        assert_eq!(found, ["nginx nginx haproxy by port"]);
        assert!(left.is_empty());
    }

    #[test]
    fn a_service_is_matched_by_port_only_where_it_shares_one() {
        let other: (_, &[u16]) = ("haproxy", &[8443]);
        let (found, left) = matched(&[&[("nginx", HTTPS)], &[("haproxy", HTTPS)], &[other]]);
        assert_eq!(found, ["nginx haproxy - by port"]);
        assert_eq!(left, ["haproxy [2]"]);
        let (found, left) = matched(&[&[("nginx", HTTPS)], &[other]]);
        assert!(found.is_empty());
        assert_eq!(left, ["nginx [0]", "haproxy [1]"]);
    }

    #[test]
    fn no_service_is_matched_by_port_to_two() {
        let two: &[(&str, &[u16])] = &[("nginx", HTTPS), ("apache", HTTPS)];
        let (found, left) = matched(&[two, &[("haproxy", HTTPS)]]);
        assert_eq!(found, ["nginx haproxy by port"]);
        assert_eq!(left, ["apache [0]"]);
        let (found, left) = matched(&[two, &[("haproxy", HTTPS), ("caddy", HTTPS)]]);
        assert_eq!(found, ["nginx haproxy by port", "apache caddy by port"]);
        assert!(left.is_empty());
        // One by name, which needs none.
        let (found, left) = matched(&[two, &[("apache", HTTPS), ("haproxy", HTTPS)]]);
        assert_eq!(found, ["apache apache by name", "nginx haproxy by port"]);
        assert!(left.is_empty());
    }
}
