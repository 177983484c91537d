//! Timed packets to the services that own their connections.

use std::collections::BTreeMap;

use super::division::Name;
use crate::discover::ports::ListeningPorts;
use crate::discover::table::{ProcessSource, ProcessTable};
use crate::evidence::Pid;
use crate::evidence::packets::{Owner, TimedPackets};
use crate::session::Session;

impl Session {
    /// Takes the times of packets since the last time: before the samples of that time
    /// are divided by them.
    pub(in crate::session) fn take_packets(&mut self) {
        let Self {
            loaded,
            table,
            samples,
            listening,
            undecodable,
            ..
        } = self;
        let in_threads = samples.softirqs_are_in_threads();
        let mut owners = Owners::new(table, listening.known());
        loaded.take_packets(|key, time| {
            let Some(packets) = TimedPackets::decode(key, time) else {
                *undecodable += 1;
                return;
            };
            // Its samples are that thread's, and are not divided.
            if in_threads && table.is_selected(packets.on) {
                return;
            }
            let owner = owners.of(packets.owner);
            tracing::debug!(?packets, ?owner, "timed packets");
            let TimedPackets {
                activity,
                count,
                nanos,
                ..
            } = packets;
            samples.elsewhere.measure(activity, owner, count, nanos);
        });
    }
}

/// Who owns connections.
struct Owners<'a, S> {
    table: &'a ProcessTable<S>,
    ports: &'a ListeningPorts,
    /// Those that were asked for: to find one, all processes are looked through.
    by_port: BTreeMap<u16, Option<Name>>,
}

impl<'a, S: ProcessSource> Owners<'a, S> {
    const fn new(table: &'a ProcessTable<S>, ports: &'a ListeningPorts) -> Self {
        Self {
            table,
            ports,
            by_port: BTreeMap::new(),
        }
    }

    /// The service; None if it is not known.
    fn of(&mut self, owner: Owner) -> Option<Name> {
        match owner {
            Owner::Process(process) => self.of_process(process),
            Owner::Port(port) => {
                if let Some(known) = self.by_port.get(&port) {
                    return known.clone();
                }
                let found = self.of_port(port);
                self.by_port.insert(port, found.clone());
                found
            }
            Owner::Unknown => None,
        }
    }

    fn of_process(&self, process: Pid) -> Option<Name> {
        let service = self.table.service_of(process)?;
        let is_selected = self.table.is_selected(process);
        Some(is_selected.then(|| service.as_str().to_owned()))
    }

    /// Several services may listen on one port, each in its network namespace: then the
    /// port does not tell.
    fn of_port(&self, port: u16) -> Option<Name> {
        let processes = self.ports.listening_on(port);
        let mut services = processes.filter_map(|process| self.of_process(process));
        let first = services.next()?;
        services.all(|service| service == first).then_some(first)
    }
}
