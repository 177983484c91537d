//! Which service has a listening socket.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use tlsprof_common::Pid;
use tlsprof_discover::ProcRoot;
use tlsprof_discover::table::ServiceView;
use tlsprof_kernel::sock_diag::ListeningSocket;

/// Least idle time after a reading, as a multiple of how long the reading took: readings use at
/// most half a percent of a CPU.
pub(super) const MIN_IDLE_FACTOR: u32 = 200;

/// Who has a socket open is looked up again after this time: it may be handed on.
const OWNERS_PERIOD: Duration = Duration::from_secs(60);

/// So many of the latest processes of a service, and its first.
const LOOKED_THROUGH: usize = 15;

/// Which service has a listening socket, by its cookie; None for none that is
/// profiled.
#[derive(Debug)]
pub(super) struct Owners {
    services: BTreeMap<u64, Option<String>>,
    looked_up: Option<Instant>,
    /// No new look before so much time has passed.
    rest: Duration,
}

impl Owners {
    pub(super) const fn new() -> Self {
        Self {
            services: BTreeMap::new(),
            looked_up: None,
            rest: Duration::ZERO,
        }
    }

    /// The service that has the socket; None for none that is profiled.
    pub(super) fn of(&self, socket: &ListeningSocket) -> Option<&str> {
        self.services.get(&socket.cookie)?.as_deref()
    }

    /// Looks who has the sockets open, if one is new or the last look is long ago.
    pub(super) fn update(
        &mut self,
        proc: &ProcRoot,
        services: &[ServiceView<'_>],
        sockets: &[ListeningSocket],
    ) {
        let cookies: BTreeSet<u64> = sockets.iter().map(|one| one.cookie).collect();
        self.services.retain(|cookie, _| cookies.contains(cookie));
        let began = Instant::now();
        let is_new = cookies.len() > self.services.len();
        let is_old = self
            .looked_up
            .is_none_or(|then| then.elapsed() >= OWNERS_PERIOD);
        let rests = self
            .looked_up
            .is_some_and(|then| then.elapsed() < self.rest);
        if !(is_new || is_old) || rests {
            return;
        }
        let inodes: BTreeSet<u64> = sockets.iter().map(|one| one.inode).collect();
        let processes = services
            .iter()
            .flat_map(|service| some_of(&service.processes));
        let holders = proc.holders(processes, &inodes);
        self.services = sockets
            .iter()
            .map(|socket| {
                let pids = holders.get(&socket.inode);
                let owner = pids.and_then(|pids| owner(services, pids));
                (socket.cookie, owner)
            })
            .collect();
        self.looked_up = Some(began);
        self.rest = began.elapsed() * MIN_IDLE_FACTOR;
    }
}

/// Those of the processes of a service whose open files are looked through: all of 1,000 workers, each
/// with a channel to each other, would take ten seconds.
fn some_of(processes: &[Pid]) -> impl Iterator<Item = Pid> {
    let latest = processes.len().saturating_sub(LOOKED_THROUGH);
    let first = processes.iter().take(latest.min(1));
    first.chain(processes.iter().skip(latest)).copied()
}

/// The service that most of these processes belong to; among equals the one with the
/// latest process: a helper binds, hands on and stays.
fn owner(services: &[ServiceView<'_>], pids: &[Pid]) -> Option<String> {
    let counts = services.iter().map(|service| {
        let theirs = |pid: &&Pid| service.processes.contains(pid);
        let own: Vec<&Pid> = pids.iter().filter(theirs).collect();
        (own.len(), own.last().copied().copied(), service.name)
    });
    let most = counts.max_by_key(|(count, last, _)| (*count, *last))?;
    (most.0 > 0).then(|| most.2.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
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
        let owned_by = |pids: &[Pid]| owner(&services, pids);
        assert_eq!(owned_by(&[10, 20, 21, 30]).as_deref(), Some("server"));
        assert_eq!(owned_by(&[10, 20]).as_deref(), Some("server"));
        assert_eq!(owned_by(&[10]).as_deref(), Some("helper"));
        assert_eq!(owned_by(&[99]), None);
        assert_eq!(owned_by(&[]), None);
    }

    #[test]
    fn of_many_processes_the_first_and_the_latest_are_looked_through() {
        let all: Vec<Pid> = (1..=1000).collect();
        let expected: Vec<Pid> = [1].into_iter().chain(986..=1000).collect();
        assert!(some_of(&all).eq(expected));
        for few in [1, 15, 16] {
            let all: Vec<Pid> = (1..=few).collect();
            assert!(some_of(&all).eq(1..=few));
        }
    }
}
