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

/// Services of one group alone are taken for one if they listen on the same port.
fn by_port(matching: &mut Matching, known: &[BTreeMap<&str, Known>]) {
    let alone =
        |one: &(String, Vec<usize>, Absence)| one.2 == Absence::OnlyThere && one.1.len() == 1;
    let lone: Vec<(String, usize)> = matching
        .left_out
        .iter()
        .filter(|one| alone(one))
        .filter_map(|one| Some((one.0.clone(), *one.1.first()?)))
        .collect();
    let ports = |name: &str, at: usize| known.get(at).and_then(|of| of.get(name)).map(|k| &k.ports);
    for (first, _) in lone.iter().filter(|(_, at)| *at == 0) {
        let mut names: Vec<Option<String>> = vec![None; known.len()];
        let share_port = |name: &str, at| match (ports(first, 0), ports(name, at)) {
            (Some(a), Some(b)) => a.intersection(b).next().is_some(),
            _ => false,
        };
        for (name, at) in lone.iter().filter(|(_, at)| *at != 0) {
            if let Some(place) = names.get_mut(*at).filter(|place| place.is_none())
                && share_port(name, *at)
            {
                *place = Some(name.clone());
            }
        }
        if names.iter().any(Option::is_some) {
            if let Some(place) = names.first_mut() {
                *place = Some(first.clone());
            }
            let used: BTreeSet<&String> = names.iter().flatten().collect();
            matching.left_out.retain(|one| !used.contains(&one.0));
            matching.matched.push(Matched {
                names,
                by: MatchedBy::Port,
            });
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
