//! Which service has a listening socket.

use std::collections::BTreeMap;

use tlsprof_common::Pid;
use tlsprof_discover::ports::ListeningPorts;
use tlsprof_discover::table::ServiceView;
use tlsprof_kernel::sock_diag::ListeningSocket;

/// Which service has a listening socket open.
pub(super) struct Owners<'a> {
    services: BTreeMap<Pid, &'a str>,
    ports: &'a ListeningPorts,
}

impl<'a> Owners<'a> {
    /// Among these services.
    pub(super) fn new(services: &'a [ServiceView<'_>], ports: &'a ListeningPorts) -> Self {
        let members = services.iter().flat_map(|service| {
            let members = service.processes.iter();
            members.map(|pid| (*pid, service.name.as_str()))
        });
        Self {
            services: members.collect(),
            ports,
        }
    }

    /// The service that most of the processes belong to which have it open; among equals the one with the
    /// latest process: a helper binds, hands on and stays. None for none of these.
    pub(super) fn of(&self, socket: &ListeningSocket) -> Option<&'a str> {
        let mut counts: BTreeMap<&str, (usize, Pid)> = BTreeMap::new();
        for pid in self.ports.holders(socket.inode)? {
            if let Some(service) = self.services.get(pid) {
                let (count, last) = counts.entry(service).or_default();
                *count += 1;
                *last = (*last).max(*pid);
            }
        }
        let most = counts.into_iter().max_by_key(|(_, rank)| *rank);
        most.map(|(service, _)| service)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use tlsprof_common::Listener;
    use tlsprof_discover::service::ServiceName;

    #[test]
    fn a_listener_belongs_to_who_has_it_most_and_else_to_the_latest() {
        let names = ["helper", "server", "other"].map(ServiceName::new);
        let [helper, server, other] = &names;
        let view = |name, processes: &[Pid]| ServiceView {
            name,
            executable: Path::new(""),
            processes: processes.to_vec(),
            images: Vec::new(),
        };
        let services = [
            view(helper, &[10]),
            view(server, &[20, 21]),
            view(other, &[30]),
        ];
        let owned_by = |pids: &[Pid]| {
            let ports = ListeningPorts::new(pids.iter().map(|&process| Listener {
                process,
                socket: 7,
                port: 443,
            }));
            let socket = ListeningSocket {
                inode: 7,
                ..ListeningSocket::default()
            };
            let owners = Owners::new(&services, &ports);
            owners.of(&socket).map(str::to_owned)
        };
        assert_eq!(owned_by(&[10, 20, 21, 30]).as_deref(), Some("server"));
        assert_eq!(owned_by(&[10, 20]).as_deref(), Some("server"));
        assert_eq!(owned_by(&[10]).as_deref(), Some("helper"));
        assert_eq!(owned_by(&[99]), None);
        assert_eq!(owned_by(&[]), None);
    }
}
