//! Which service a load was for.

use std::collections::BTreeMap;

use tlsprof_advise::is_server;
use tlsprof_ledger::Ledger;

use super::ServiceFacts;

/// Marks the service that the load was for: of those that others connected to, the only one that
/// listens on the `port` of the load tool's URL. If there is none, as behind a mapped port, or
/// there are several, it is the only one of all; else nobody knows.
///
/// Where the user named services, the ledger has these alone.
pub fn mark_target(
    services: &mut BTreeMap<String, ServiceFacts>,
    ledger: &Ledger,
    port: Option<u16>,
) {
    let servers = ledger.services().filter(|(_, account)| is_server(account));
    let servers: Vec<&str> = servers.map(|(name, _)| name).collect();
    let listens = |name: &str| {
        let facts = services.get(name).zip(port);
        facts.is_some_and(|(facts, port)| facts.ports.contains(&port))
    };
    let listening: Vec<&str> = servers
        .iter()
        .copied()
        .filter(|name| listens(name))
        .collect();
    if let ([name], _) | (_, [name]) = (listening.as_slice(), servers.as_slice()) {
        services.entry((*name).to_owned()).or_default().is_target = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlsprof_common::Role;
    use tlsprof_evidence::sample::opening;

    /// Services with their ports and connections.
    type Service = (&'static str, &'static [u16], Role, u64);

    const GATEWAY: Service = ("gateway", &[80, 443], Role::Server, 10);
    /// Asked twice for each request, so that it is the busiest.
    const BACKEND: Service = ("backend", &[8000], Role::Server, 20);
    const CLIENT: Service = ("ab", &[], Role::Client, 10);
    const IDLE: Service = ("docker-proxy", &[443, 8443], Role::Server, 0);

    fn target(all: &[Service], port: Option<u16>) -> Option<String> {
        let mut ledger = Ledger::default();
        let mut services = BTreeMap::new();
        for (name, ports, role, connections) in all {
            for _ in 0..*connections {
                ledger.record_opening(name, &opening(*role));
            }
            let facts = ServiceFacts {
                ports: ports.to_vec(),
                ..ServiceFacts::default()
            };
            services.insert((*name).to_owned(), facts);
        }
        mark_target(&mut services, &ledger, port);
        let mut marked = services.into_iter().filter(|(_, facts)| facts.is_target);
        let name = marked.next().map(|(name, _)| name);
        assert!(marked.next().is_none());
        name
    }

    #[test]
    fn the_target_listens_on_the_port_of_the_load() {
        let all = [GATEWAY, BACKEND, CLIENT, IDLE];
        assert_eq!(target(&all, Some(443)).as_deref(), Some("gateway"));
        assert_eq!(target(&all, Some(8000)).as_deref(), Some("backend"));
    }

    #[test]
    fn without_a_known_port_the_target_is_the_only_server() {
        for port in [None, Some(8443)] {
            assert_eq!(target(&[GATEWAY, BACKEND, CLIENT, IDLE], port), None);
            let one = target(&[GATEWAY, CLIENT, IDLE], port);
            assert_eq!(one.as_deref(), Some("gateway"));
            assert_eq!(target(&[CLIENT, IDLE], port), None);
        }
    }

    #[test]
    fn two_that_listen_on_one_port_are_no_target() {
        let other = ("other", [443].as_slice(), Role::Server, 1);
        assert_eq!(target(&[GATEWAY, other], Some(443)), None);
    }
}
