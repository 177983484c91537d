//! What the user wants to have profiled.

use std::collections::BTreeSet;

use super::service::ServiceName;
use tlsprof_common::Pid;

/// What to profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// Every service.
    #[default]
    All,
    /// The service of this name; `.service` at its end may be there or not.
    Service(String),
    /// The services of these names, now or later.
    Named(Vec<String>),
    /// This process and its descendants.
    Pid(Pid),
    /// The processes that listen on this TCP port, and their descendants.
    Port(u16),
}

/// Nothing is selected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// No process has this id.
    #[error("no process {0}; `tlsprof list` shows what runs here")]
    NoProcess(Pid),
    /// No service has this name.
    #[error("no service `{name}`{}; `tlsprof list` shows what runs here", suggest(.closest.as_ref()))]
    NoService {
        /// The name asked for.
        name: String,
        /// One that looks like it.
        closest: Option<ServiceName>,
    },
    /// No process listens on this port.
    #[error("nothing listens on TCP port {0}; `tlsprof list` shows the ports of each service")]
    NoListener(u16),
}

fn suggest(closest: Option<&ServiceName>) -> String {
    closest
        .map(|name| format!(", did you mean `{name}`?"))
        .unwrap_or_default()
}

/// A selection that was found to select something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Every process.
    All,
    /// The processes of these services.
    Services(BTreeSet<ServiceName>),
    /// Certain processes, and those that descend from them.
    Family,
}

impl Wanted {
    /// Whether a process of this service is selected; `inherited` says whether
    /// it is of the family.
    pub(super) fn includes(&self, service: &ServiceName, inherited: bool) -> bool {
        match self {
            Self::All => true,
            Self::Services(names) => names.contains(service),
            Self::Family => inherited,
        }
    }
}

impl Selection {
    /// Looks the selection up among the live services; `roots` are the processes
    /// that were found for a pid or port.
    pub(super) fn resolve<'a>(
        &self,
        services: impl Iterator<Item = &'a ServiceName>,
        roots: &BTreeSet<Pid>,
    ) -> Result<Wanted, SelectionError> {
        match self {
            Self::All => Ok(Wanted::All),
            Self::Service(name) => find(name, &services.collect()),
            Self::Named(names) => {
                let short =
                    |name: &String| ServiceName::new(name.strip_suffix(".service").unwrap_or(name));
                Ok(Wanted::Services(names.iter().map(short).collect()))
            }
            Self::Pid(pid) if roots.is_empty() => Err(SelectionError::NoProcess(*pid)),
            Self::Port(port) if roots.is_empty() => Err(SelectionError::NoListener(*port)),
            Self::Pid(_) | Self::Port(_) => Ok(Wanted::Family),
        }
    }
}

fn find(name: &str, services: &BTreeSet<&ServiceName>) -> Result<Wanted, SelectionError> {
    let short = name.strip_suffix(".service").unwrap_or(name);
    let found = services
        .iter()
        .find(|service| [name, short].contains(&service.as_str()));
    match found {
        Some(&service) => Ok(Wanted::Services(BTreeSet::from([service.clone()]))),
        None => Err(SelectionError::NoService {
            name: name.to_owned(),
            closest: closest(short, services).cloned(),
        }),
    }
}

/// The service whose name has the fewest differences, if they are few; else the
/// first that contains the name, as a container's does (`nginx@0123456789ab`).
fn closest<'a>(name: &str, services: &BTreeSet<&'a ServiceName>) -> Option<&'a ServiceName> {
    let few = (name.chars().count() / 3).max(1);
    let nearest = services
        .iter()
        .map(|&service| (distance(name, service.as_str()), service));
    match nearest.min_by_key(|&(distance, _)| distance) {
        Some((distance, service)) if distance <= few => Some(service),
        _ => services
            .iter()
            .find(|s| !name.is_empty() && s.as_str().contains(name))
            .copied(),
    }
}

/// Levenshtein's: how many characters to insert, remove or replace.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.chars()) {
            let replaced = diagonal + usize::from(x != y);
            diagonal = *cell;
            left = replaced.min(diagonal + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop")]

    use super::*;

    fn error(selection: &Selection, names: &[&str]) -> String {
        let names: Vec<ServiceName> = names.iter().map(|name| ServiceName::new(name)).collect();
        selection
            .resolve(names.iter(), &BTreeSet::new())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn levenshtein() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("ngnix", "nginx", 2),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn errors_say_what_to_do() {
        assert_eq!(
            error(&Selection::Pid(12345), &[]),
            "no process 12345; `tlsprof list` shows what runs here"
        );
        assert_eq!(
            error(&Selection::Service("ngin".into()), &["apache2", "nginx"]),
            "no service `ngin`, did you mean `nginx`?; `tlsprof list` shows what runs here"
        );
        assert_eq!(
            error(&Selection::Service("web".into()), &["apache2", "nginx"]),
            "no service `web`; `tlsprof list` shows what runs here"
        );
        assert_eq!(
            error(&Selection::Port(8443), &["nginx"]),
            "nothing listens on TCP port 8443; `tlsprof list` shows the ports of each service"
        );
    }

    #[test]
    fn a_container_is_suggested_by_its_program() {
        let text = error(
            &Selection::Service("nginx".into()),
            &["cron", "nginx@0123456789ab"],
        );
        assert!(
            text.contains("did you mean `nginx@0123456789ab`?"),
            "{text}"
        );
    }

    #[test]
    fn the_ending_of_a_unit_may_be_given() {
        let nginx = ServiceName::new("nginx");
        for name in ["nginx", "nginx.service"] {
            let selection = Selection::Service(name.into());
            let wanted = selection.resolve([&nginx].into_iter(), &BTreeSet::new());
            assert_eq!(
                wanted,
                Ok(Wanted::Services(BTreeSet::from([nginx.clone()])))
            );
        }
    }
}
