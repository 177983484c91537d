//! What a session profiles and how, in a line for its start.

use std::path::Path;

use super::Session;
use tlsprof_attach::registry::{Image, State};
use tlsprof_outlet::list::library_name;

/// Services named in the line.
const NAMED: usize = 3;

/// How the handshakes of a service are seen: what comes first is named first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// By probes in this TLS library.
    Library(String),
    /// By its socket calls.
    SocketCalls,
    /// By probes in the library of a program that listens nowhere.
    Client(String),
}

impl Source {
    fn words(&self) -> String {
        match self {
            Self::Library(name) | Self::Client(name) => format!("{name}, its functions"),
            Self::SocketCalls => "from its socket calls".to_owned(),
        }
    }
}

impl Session {
    /// What is profiled and how, in a few words.
    pub(crate) fn coverage(&self) -> String {
        let ports = self.ports.known();
        let services = self.targets.table.services();
        let sees_calls = self.loaded.connections.calls().is_ok();
        let mut covered: Vec<(Source, &str)> = Vec::new();
        let up: Vec<&Path> = self
            .targets
            .table
            .executables_up_from(std::process::id())
            .collect();
        for service in &services {
            let listens = !ports.of(service.processes.iter().copied()).is_empty();
            let images: Vec<&Image> = self.targets.libraries_of(service).collect();
            let source = match probed_library(&images) {
                Some(name) if listens || self.targets.are_named() => Source::Library(name),
                Some(name) => Source::Client(name),
                None if sees_calls && (listens || self.targets.are_named()) => Source::SocketCalls,
                None => continue,
            };
            if self.targets.are_named() || !is_own(&source, service.executable, &up) {
                covered.push((source, service.name.as_str()));
            }
        }
        covered.sort();
        if covered.is_empty() && self.targets.are_named() {
            return "nothing yet: the service is not running".to_owned();
        }
        in_words(&covered)
    }
}

/// Whether a service is tlsprof, which may run as an agent as well, or what has started it, such as
/// sudo, which maps OpenSSL. `up`: executables of this process, its parent, and so on.
fn is_own(source: &Source, executable: &Path, up: &[&Path]) -> bool {
    let is_client = matches!(source, Source::Client(_));
    up.first() == Some(&executable) || (is_client && up.contains(&executable))
}

/// Name and version of the library whose handshakes are probed.
fn probed_library(images: &[&Image]) -> Option<String> {
    let found = |image: &&&Image| image.library.as_ref().is_some_and(|found| found.handshakes);
    let probed = |image: &&&Image| matches!(image.state, State::Profiled);
    images.iter().filter(probed).find(found)?;
    let libraries = images.iter().filter_map(|image| image.library.as_ref());
    let names = libraries.map(|found| (found.library.name, found.release()));
    Some(library_name(names))
}

fn in_words(covered: &[(Source, &str)]) -> String {
    let named = covered.iter().take(NAMED);
    let mut named: Vec<String> = named
        .map(|(source, name)| format!("{name} ({})", source.words()))
        .collect();
    if let Some(more @ 1..) = covered.len().checked_sub(NAMED) {
        named.push(format!("{more} more"));
    }
    match named.split_last() {
        None => "services that appear from now on: none listens on a TCP port yet".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_services_at_most_are_named() {
        let library = || Source::Library("OpenSSL 3.0.19".to_owned());
        let mut covered = vec![(library(), "nginx")];
        assert_eq!(in_words(&covered), "nginx (OpenSSL 3.0.19, its functions)");
        covered.push((Source::SocketCalls, "http"));
        assert_eq!(
            in_words(&covered),
            "nginx (OpenSSL 3.0.19, its functions) and http (from its socket calls)"
        );
        covered.extend([(Source::SocketCalls, "sshd"), (Source::SocketCalls, "x")]);
        let text = in_words(&covered);
        assert!(
            text.ends_with("), sshd (from its socket calls) and 1 more"),
            "{text}"
        );
    }

    #[test]
    fn servers_with_a_probed_library_are_named_first_and_clients_last() {
        let mut covered = [
            (Source::Client("OpenSSL 3.5.0".to_owned()), "curl"),
            (Source::SocketCalls, "http"),
            (Source::Library("OpenSSL 3.0.19".to_owned()), "nginx"),
        ];
        covered.sort();
        let names: Vec<&str> = covered.iter().map(|(_, name)| *name).collect();
        assert_eq!(names, ["nginx", "http", "curl"]);
    }

    #[test]
    fn tlsprof_and_what_started_it_are_left_out_unless_it_listens() {
        let up = ["/usr/bin/tlsprof", "/usr/bin/sudo", "/usr/sbin/sshd"].map(Path::new);
        let client = Source::Client("OpenSSL 3.0.19".to_owned());
        let own = |source: &Source, path: &str| is_own(source, Path::new(path), &up);
        assert!(own(&Source::SocketCalls, "/usr/bin/tlsprof"));
        assert!(own(&client, "/usr/bin/sudo"));
        assert!(!own(&Source::SocketCalls, "/usr/sbin/sshd"));
        assert!(!own(&client, "/usr/bin/curl"));
    }

    #[test]
    fn a_host_on_which_nothing_listens_yet_is_profiled_all_the_same() {
        assert!(in_words(&[]).starts_with("services that appear from now on"));
    }
}
