//! What the user wants to have profiled.

use std::collections::BTreeSet;

use super::service::ServiceName;
use tlsprof_common::{Pid, did_you_mean, near};

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
    #[error("no service `{name}`{}; `tlsprof list` shows what runs here", did_you_mean(.near))]
    NoService {
        /// The name asked for.
        name: String,
        /// Those that look like it.
        near: Vec<String>,
    },
    /// No process listens on this port.
    #[error("nothing listens on TCP port {0}; `tlsprof list` shows the ports of each service")]
    NoListener(u16),
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
    /// The names that no service has yet, each as the error that it would be if it were the only
    /// one asked for.
    pub(super) fn unmatched<'a>(
        &self,
        services: impl Iterator<Item = &'a ServiceName>,
    ) -> Vec<SelectionError> {
        let Self::Named(names) = self else {
            return Vec::new();
        };
        let services = services.collect();
        let errors = names.iter().map(|name| find(name, &services).err());
        errors.flatten().collect()
    }

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
                let names = names.iter().map(|name| ServiceName::new(short(name)));
                Ok(Wanted::Services(names.collect()))
            }
            Self::Pid(pid) if roots.is_empty() => Err(SelectionError::NoProcess(*pid)),
            Self::Port(port) if roots.is_empty() => Err(SelectionError::NoListener(*port)),
            Self::Pid(_) | Self::Port(_) => Ok(Wanted::Family),
        }
    }
}

fn short(name: &str) -> &str {
    name.strip_suffix(".service").unwrap_or(name)
}

fn find(name: &str, services: &BTreeSet<&ServiceName>) -> Result<Wanted, SelectionError> {
    let found = services
        .iter()
        .find(|service| [name, short(name)].contains(&service.as_str()));
    let Some(&service) = found else {
        let names = services.iter().map(|service| service.as_str());
        let near = near(short(name), names).into_iter().map(str::to_owned);
        return Err(SelectionError::NoService {
            name: name.to_owned(),
            near: near.collect(),
        });
    };
    Ok(Wanted::Services(BTreeSet::from([service.clone()])))
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
    fn errors_say_what_to_do() {
        assert_eq!(
            error(&Selection::Pid(12345), &[]),
            "no process 12345; `tlsprof list` shows what runs here"
        );
        assert_eq!(
            error(&Selection::Service("ngin".into()), &["apache2", "nginx"]),
            "no service `ngin` (did you mean `nginx`?); `tlsprof list` shows what runs here"
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
    fn names_that_nothing_has_yet_are_known() {
        let nginx = ServiceName::new("nginx");
        let named = Selection::Named(vec!["ngnix".into(), "nginx.service".into()]);
        let errors = named.unmatched([&nginx].into_iter());
        let error = SelectionError::NoService {
            name: "ngnix".into(),
            near: vec!["nginx".into()],
        };
        assert_eq!(errors, [error]);
        assert_eq!(Selection::All.unmatched([&nginx].into_iter()), []);
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
