//! What a session knows beside the ledger: the facts of a report, and the
//! agent's word on itself.

use std::collections::BTreeMap;

use super::Session;
use tlsprof_attach::registry::{Image, State};
use tlsprof_common::Loss;
use tlsprof_common::units::percent;
use tlsprof_discover::host::other_pid_namespace;
use tlsprof_discover::ports::{ListeningPorts, udp_ports};
use tlsprof_discover::table::ServiceView;
use tlsprof_kernel::object::UprobeMode;
use tlsprof_ledger::{Ledger, ServiceAccount};
use tlsprof_library::supported;
use tlsprof_outlet::terminal::units::counted;
use tlsprof_outlet::watch::Reduced;
use tlsprof_report::ServiceFacts;
use tlsprof_report::model::{self, AgentCost, Host, TlsLibrary};

/// From this part of the CPU time on, what the hypervisor withheld is reported.
const STOLEN: f64 = 0.01;

impl Session {
    /// The machine.
    pub fn host(&self) -> Host {
        model_of(&self.host)
    }

    /// Data that was lost so far, by reason; zeros included.
    pub fn losses(&self) -> Vec<model::Loss> {
        let counts = self.loss_counts().into_iter();
        counts
            .map(|(reason, count)| model::Loss { reason, count })
            .collect()
    }

    /// The same, for metrics.
    pub(crate) fn loss_counts(&self) -> Vec<(Loss, u64)> {
        if let Some(lost) = &self.lost {
            let now = |&(loss, count): &(Loss, u64)| match loss {
                // The last samples are looked up after the release.
                Loss::FunctionNotLookedUp => (loss, self.samples.not_looked_up()),
                _ => (loss, count),
            };
            return lost.iter().map(now).collect();
        }
        let kernel = self.loaded.losses();
        let count = |loss| match loss {
            Loss::UndecodableRecord => self.books.undecodable() + self.samples.undecodable(),
            Loss::MappingRecordLost => self.targets.mappings_lost(),
            Loss::ProcessTableFull => self.targets.table.ignored(),
            Loss::ProgramSkipped => self.loaded.skipped_programs(),
            Loss::HandshakeSilent => self.silence.handshakes(),
            Loss::FunctionNotLookedUp => self.samples.not_looked_up(),
            Loss::HelloGap | Loss::HelloTableFull | Loss::HandshakeQueueFull => {
                self.books.lost(loss)
            }
            Loss::EventRingFull
            | Loss::HandshakeTableFull
            | Loss::ThreadTableFull
            | Loss::NestedHandshake
            | Loss::BeganBeforeAttach
            | Loss::ConnectionNoMemory
            | Loss::ExchangeTableFull
            | Loss::HelloNotFollowed
            | Loss::SampleTableFull
            | Loss::SampleWithoutStack
            | Loss::Unknown => kernel.get(loss as usize).copied().unwrap_or_default(),
        };
        Loss::ALL.iter().map(|loss| (*loss, count(*loss))).collect()
    }

    /// What the profile has cost so far.
    pub fn cost(&self) -> AgentCost {
        self.overhead.cost(&self.loaded, &self.ledger())
    }

    /// Share of the time in which the public-key steps are probed.
    pub fn step_duty_ratio(&self) -> f64 {
        self.where_probed(self.overhead.step_duty_ratio())
    }

    /// Share of the time in which TLS libraries are probed.
    pub fn library_duty_ratio(&self) -> f64 {
        self.where_probed(f64::from(u8::from(self.overhead.probes_libraries())))
    }

    /// The budget's part of a duty; none of it where libraries are not probed anyway.
    fn where_probed(&self, ratio: f64) -> f64 {
        match self.targets.may_probe(&self.loaded) {
            true => ratio,
            false => 0.0,
        }
    }

    /// Share of the time in which socket calls are seen, as far as the kernel lets them be.
    pub fn calls_duty_ratio(&self) -> f64 {
        self.calls.ratio()
    }

    /// What is not measured now, to keep the budget.
    pub(crate) fn reduced(&self) -> Option<Reduced> {
        self.overhead.reduced()
    }

    /// The selected services that have a TLS library, handshakes or TCP
    /// connections, by name; all of them if the user named what to profile.
    pub(crate) fn service_facts(&self, ports: &ListeningPorts) -> BTreeMap<String, ServiceFacts> {
        let services = self.targets.table.services();
        let ledger = self.ledger();
        let known = services
            .iter()
            .filter(|service| self.is_known(service, &ledger));
        let facts = known.map(|service| {
            (
                service.name.as_str().to_owned(),
                self.facts_of(service, ports),
            )
        });
        facts.collect()
    }

    fn is_known(&self, service: &ServiceView<'_>, ledger: &Ledger) -> bool {
        self.targets.are_named()
            || self.targets.libraries_of(service).next().is_some()
            || ledger
                .service(service.name.as_str())
                .is_some_and(communicates)
    }

    /// The ports of all processes, as they were at the end or lately.
    pub(crate) const fn ports(&self) -> &ListeningPorts {
        self.ports.known()
    }

    /// The facts of services with the ports as they were lately, some seconds ago at most.
    pub(crate) fn recent_facts(&self) -> BTreeMap<String, ServiceFacts> {
        self.service_facts(self.ports.known())
    }

    fn facts_of(&self, service: &ServiceView<'_>, ports: &ListeningPorts) -> ServiceFacts {
        ServiceFacts {
            executable: service.executable.display().to_string(),
            processes: u32::try_from(service.processes.len()).unwrap_or(u32::MAX),
            ports: ports
                .of(service.processes.iter().copied())
                .into_iter()
                .collect(),
            tls_libraries: self
                .targets
                .libraries_of(service)
                .map(tls_library)
                .collect(),
            named: self.targets.are_named(),
            ..ServiceFacts::default()
        }
    }

    /// How many services run that [`recent_facts`](Self::recent_facts) has.
    pub(crate) fn service_count(&self) -> usize {
        let services = self.targets.table.services();
        let ledger = self.ledger();
        let known = services
            .iter()
            .filter(|service| self.is_known(service, &ledger));
        known.count()
    }

    /// What it means that nothing which the user named has a TLS library, nor had one while it
    /// lived.
    pub(crate) fn note_on_library(&self) -> Option<String> {
        (self.targets.are_named()
            && self.targets.with_library() == 0
            && !self.targets.is_examining()
            && !self.ledger().has_library_handshakes())
        .then(|| {
            format!(
                "No TLS library that tlsprof can probe ({}, shared, or static with symbols): figures \
                 come from socket calls only.",
                supported()
            )
        })
    }

    /// Services that also serve QUIC, or seem to: a UDP socket on a port that is theirs for TCP.
    fn notes_on_quic(&self, ports: &ListeningPorts) -> Vec<String> {
        let services = self.targets.table.services();
        let notes = services.iter().filter_map(|service| {
            let tcp = ports.of(service.processes.iter().copied());
            let mut udp = udp_ports(&self.targets.proc, service.processes.iter().copied());
            udp.retain(|port| tcp.contains(port));
            let numbers: Vec<String> = udp.iter().map(u16::to_string).collect();
            (!numbers.is_empty()).then(|| {
                format!(
                    "{} also has UDP sockets on port {}: tlsprof does not measure QUIC (HTTP/3), \
                     whose handshakes and requests are in no figure.",
                    service.name.as_str(),
                    numbers.join(", ")
                )
            })
        });
        notes.collect()
    }

    /// What it means that the hypervisor gave CPU time to others.
    fn note_on_steal(&self) -> Option<String> {
        let stolen = self.cpu.stolen()?;
        (stolen >= STOLEN).then(|| {
            format!(
                "Steal: the hypervisor withheld {} of the CPU time that this host requested. The \
                 CPU time of handshakes includes it; that of services only on kernels without \
                 CONFIG_PARAVIRT_TIME_ACCOUNTING.",
                percent(stolen)
            )
        })
    }

    /// What a reader must know to judge the figures.
    pub fn notes(&self, ports: &ListeningPorts) -> Vec<String> {
        let mut notes = Vec::new();
        notes.extend(other_pid_namespace().map(|problem| format!("{problem}.")));
        notes.extend(self.ports.note(&self.targets));
        notes.extend(self.note_on_library());
        notes.extend(self.targets.note());
        notes.extend(self.notes_on_quic(ports));
        if self.loaded.mode == UprobeMode::Single {
            notes.push("This kernel has no uprobe_multi (Linux 6.6): attaching and releasing takes longer.".to_owned());
        }
        if let Err(reason) = &self.loaded.library {
            notes.push(format!(
                "TLS libraries were not probed, and handshakes come from socket calls only: {reason}."
            ));
        }
        let connections = &self.loaded.connections;
        if let Err(reason) = connections.life_cycle() {
            notes.push(format!("TCP connections were not followed: {reason}."));
        } else if let Err(reason) = connections.calls() {
            notes.push(format!(
                "Turns of TCP connections were not counted: {reason}."
            ));
        }
        let ownerless = self.ledger().ownerless();
        if ownerless > 0 {
            notes.push(format!(
                "{} on this host ended before any process read, wrote or closed them; they belong to no service.",
                counted(ownerless, "TCP connection", "TCP connections")
            ));
        }
        if self.loaded.samples.is_ok() {
            notes.extend(self.samples.notes());
        }
        notes.extend(self.note_on_steal());
        notes.extend(self.queues.note());
        notes
    }
}

/// Whether handshakes, TCP connections or accept queues were seen, whatever the TLS library.
fn communicates(account: &ServiceAccount) -> bool {
    account.handshake_count() > 0
        || account.connection_count() > 0
        || account.accept_queue.is_known()
}

/// A machine as reports have it.
pub(crate) fn model_of(host: &tlsprof_discover::host::Host) -> Host {
    Host {
        hostname: host.hostname.clone(),
        kernel: host.kernel.clone(),
        cpus: host.cpus,
    }
}

fn tls_library(image: &Image) -> TlsLibrary {
    TlsLibrary {
        kind: image
            .library
            .as_ref()
            .map_or("unknown", |found| found.library.name)
            .to_owned(),
        version: image
            .library
            .as_ref()
            .map(|library| library.release().to_owned())
            .unwrap_or_default(),
        path: image.path.display().to_string(),
        build_id: image.build_id.clone(),
        state: match &image.state {
            State::Profiled => "profiled".to_owned(),
            other => other.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use tlsprof_common::Role;
    use tlsprof_evidence::accept_queue::{AcceptQueues, Queue};
    use tlsprof_evidence::sample::{handshake, opening};

    /// Such as Go, Java and Domino, whose TLS library is no image of its own.
    #[test]
    fn a_service_is_known_by_what_it_does() {
        let mut ledger = Ledger::default();
        ledger.add_cpu("build", Duration::from_secs(1), Duration::ZERO);
        ledger.record("go", &handshake());
        ledger.record_opening("client", &opening(Role::Client));
        let mut queues = AcceptQueues::default();
        let queue = Queue {
            length: 0,
            limit: 511,
        };
        queues.add(queue, 0);
        ledger.record_accept_queues(&BTreeMap::from([("idle server".to_owned(), queues)]));
        let known = ledger
            .services()
            .filter(|(_, account)| communicates(account));
        let names: Vec<&str> = known.map(|(name, _)| name).collect();
        assert_eq!(names, ["client", "go", "idle server"]);
    }
}
