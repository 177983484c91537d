//! What a session knows beside the ledger: the facts of a report, and the
//! agent's word on itself.

use std::collections::BTreeMap;

use super::Session;
use crate::attach::registry::{Image, State};
use crate::discover::host_time::HostTime;
use crate::discover::ports::{ListeningPorts, udp_ports};
use crate::discover::table::ServiceView;
use crate::kernel::contract::{TLSPROF_HIT_ENTRY, TLSPROF_HIT_RETURN};
use crate::kernel::cost::{hook_seconds, probe_seconds};
use crate::kernel::load::UprobeMode;
use crate::outlet::report::ServiceFacts;
use crate::outlet::report::model::{AgentCost, Host, Loss, TlsLibrary};
use crate::outlet::terminal::units::counted;
use crate::units::percent;

/// From this part of the CPU time on, what the hypervisor withheld is told.
const STOLEN: f64 = 0.01;

/// Kinds of hits that are traps in a target.
const PROBES: [u32; 2] = [TLSPROF_HIT_ENTRY, TLSPROF_HIT_RETURN];

/// Reasons of `enum tlsprof_loss`, in its order.
const LOSSES: [&str; 11] = [
    "event_ring_full",
    "handshake_table_full",
    "thread_table_full",
    "nested_handshake",
    "began_before_attach",
    "connection_no_memory",
    "exchange_table_full",
    "hello_not_followed",
    "sample_table_full",
    "sample_without_stack",
    "packet_table_full",
];

impl Session {
    /// The machine.
    pub fn host(&self) -> Host {
        Host {
            hostname: self.host.hostname.clone(),
            kernel: self.host.kernel.clone(),
            cpus: self.host.cpus,
        }
    }

    /// Data that was lost so far, by reason; zeros included.
    pub fn losses(&self) -> Vec<Loss> {
        let counts = self.loss_counts().into_iter();
        counts
            .map(|(reason, count)| Loss {
                reason: reason.to_owned(),
                count,
            })
            .collect()
    }

    /// The same, for metrics.
    pub fn loss_counts(&self) -> Vec<(&'static str, u64)> {
        let kernel = LOSSES.iter().zip(self.loaded.losses());
        let skipped = self.loaded.skipped_programs();
        let own = [
            ("undecodable_record", self.undecodable),
            ("mapping_record_lost", self.mappings_lost),
            ("process_table_full", self.table.ignored()),
            ("program_skipped", skipped.programs),
            ("packet_program_skipped", skipped.packets),
            ("handshake_silent", self.silence.handshakes()),
        ];
        kernel
            .map(|(reason, count)| (*reason, count))
            .chain(own)
            .chain(
                self.joiner
                    .losses()
                    .map(|(loss, count)| (loss.label(), count)),
            )
            .collect()
    }

    /// What the profile has cost so far. Of the programs on socket calls and on
    /// the scheduler nobody knows the profiled services' part: it is at most all.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "estimates, not negative"
    )]
    pub fn cost(&self) -> AgentCost {
        let runs = self.meter.total();
        let hooks = hook_seconds(self.loaded.connections.call_cost, runs.hooks);
        let (probes, profiled_probes) = self.probe_seconds();
        AgentCost {
            cpu_seconds: own_cpu_seconds(),
            memory_bytes: own_memory_bytes(),
            bpf_run_seconds: runs.probes.seconds + runs.hooks.seconds,
            bpf_runs: (runs.probes.count + runs.hooks.count) as u64,
            probe_hits: self.probe_hits(),
            target_seconds: probes + hooks,
            profiled_seconds: profiled_probes + hooks,
        }
    }

    fn probe_hits(&self) -> u64 {
        let hits = self.loaded.hits();
        let probes = PROBES.iter().filter_map(|kind| hits.get(*kind as usize));
        probes.sum()
    }

    /// Estimated CPU seconds that probes in processes have cost: all of them, and
    /// the profiled services by their share of the hits.
    #[allow(clippy::cast_precision_loss, reason = "estimates")]
    pub(super) fn probe_seconds(&self) -> (f64, f64) {
        let all = probe_seconds(&self.loaded.hits(), self.trap, self.meter.total().probes);
        let share = self.ledger().probe_hits() as f64 / self.probe_hits().max(1) as f64;
        (all, all * share.min(1.0))
    }

    /// Share of the time in which the public-key steps are probed.
    pub fn step_duty_ratio(&self) -> f64 {
        self.step_probes.duty_ratio()
    }

    /// The selected services that have a TLS library, handshakes or TCP
    /// connections, by name; all of them if the user named what to profile.
    pub fn service_facts(&self) -> BTreeMap<String, ServiceFacts> {
        self.facts_with(&ListeningPorts::read(&self.proc, self.table.live()))
    }

    /// The same with the ports as they were lately, see [`follow_ports`](Self::follow_ports).
    pub fn recent_facts(&self) -> BTreeMap<String, ServiceFacts> {
        self.facts_with(self.listening.known())
    }

    /// Reads the ports of services now and then, beside the session. To be called about once
    /// a second by who wants [`recent_facts`](Self::recent_facts).
    pub fn follow_ports(&mut self) {
        self.listening.turn(&self.proc, self.table.lives());
    }

    fn facts_with(&self, ports: &ListeningPorts) -> BTreeMap<String, ServiceFacts> {
        let services = self.table.services();
        let facts = services.iter().map(|service| {
            (
                service.name.as_str().to_owned(),
                self.facts_of(service, ports),
            )
        });
        facts
            .filter(|(name, facts)| {
                self.named
                    || !facts.tls_libraries.is_empty()
                    || self.ledger().service(name).is_some_and(|account| {
                        account.handshake_count() > 0
                            || account.connection_count() > 0
                            || account.accept_queue.is_known()
                    })
            })
            .collect()
    }

    fn facts_of(&self, service: &ServiceView<'_>, ports: &ListeningPorts) -> ServiceFacts {
        ServiceFacts {
            executable: service.executable.display().to_string(),
            processes: u32::try_from(service.processes.len()).unwrap_or(u32::MAX),
            ports: ports
                .of(service.processes.iter().copied())
                .into_iter()
                .collect(),
            tls_libraries: self.libraries_of(service).map(tls_library).collect(),
            named: self.named,
        }
    }

    /// True if a selected process maps a TLS library.
    fn has_library(&self) -> bool {
        self.table
            .services()
            .iter()
            .any(|service| self.libraries_of(service).next().is_some())
    }

    /// Selected services with a TLS library.
    pub fn service_count(&self) -> usize {
        self.table
            .services()
            .iter()
            .filter(|service| self.libraries_of(service).next().is_some())
            .count()
    }

    /// What is profiled, in a few words.
    pub fn coverage(&self) -> String {
        format!(
            "{} in {}",
            counted(
                self.profiled_images() as u64,
                "TLS library image",
                "TLS library images"
            ),
            counted(self.service_count() as u64, "service", "services"),
        )
    }

    pub(super) fn libraries_of<'a>(
        &'a self,
        service: &'a ServiceView<'a>,
    ) -> impl Iterator<Item = &'a Image> {
        service
            .images
            .iter()
            .filter_map(|(_, mapping)| self.registry.get(mapping.image()))
    }

    /// What it means that nothing which the user named has a TLS library, nor had one while it
    /// lived.
    pub fn note_on_library(&self) -> Option<String> {
        (self.named && !self.has_library() && !self.ledger().has_library_handshakes()).then(|| {
            "No TLS library that tlsprof can probe (OpenSSL 1.1.1 and 3.x, shared, or static with \
             symbols): figures come from socket calls only."
                .to_owned()
        })
    }

    /// Services that also serve QUIC, or seem to: a UDP socket on a port that is theirs for TCP.
    fn notes_on_quic(&self) -> Vec<String> {
        let ports = ListeningPorts::read(&self.proc, self.table.live());
        let services = self.table.services();
        let notes = services.iter().filter_map(|service| {
            let tcp = ports.of(service.processes.iter().copied());
            let mut udp = udp_ports(&self.proc, service.processes.iter().copied());
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
        let (before, after) = self.host_time;
        let stolen = after.or_else(HostTime::read)?.stolen_since(before?);
        (stolen >= STOLEN).then(|| {
            format!(
                "The hypervisor withheld {} of the CPU time that this host asked for (steal): the CPU time of \
                 handshakes contains it, that of services only where the kernel leaves it in (without \
                 CONFIG_PARAVIRT_TIME_ACCOUNTING).",
                percent(stolen)
            )
        })
    }

    /// What a reader must know to judge the figures.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        notes.extend(self.note_on_port());
        notes.extend(self.note_on_library());
        notes.extend(self.notes_on_quic());
        if self.loaded.mode == UprobeMode::Single {
            notes.push("This kernel has no uprobe_multi (Linux 6.6): attaching and releasing takes longer.".to_owned());
        }
        if let Err(reason) = &self.loaded.library {
            notes.push(format!(
                "TLS libraries were not probed, and handshakes come from socket calls only: {reason}."
            ));
        }
        let connections = &self.loaded.connections;
        if let Err(reason) = &connections.life_cycle {
            notes.push(format!("TCP connections were not followed: {reason}."));
        } else if let Err(reason) = &connections.calls {
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
        if let Some(reason) = self.samples.kernel_unknown()
            && self.loaded.samples.is_ok()
        {
            notes.push(format!(
                "It is not known what the kernel was at work on, so that system time counts as the application's: {reason}."
            ));
        }
        if self.loaded.samples.is_ok() && self.samples.interrupts_unknown() {
            notes.push(
                "It is not known whether this kernel counts interrupts to the threads that they hit: they count as system time of these threads.".to_owned(),
            );
        }
        notes.extend(self.note_on_steal());
        notes.extend(self.note_on_accept_queues());
        notes.extend(self.notes_on_asking());
        notes
    }
}

fn tls_library(image: &Image) -> TlsLibrary {
    TlsLibrary {
        kind: image
            .library
            .as_ref()
            .map_or("unknown", |_| "OpenSSL")
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

/// CPU time of this process, user and system.
fn own_cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    #[allow(clippy::cast_precision_loss, reason = "seconds of CPU time are few")]
    let seconds = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
    seconds
}

/// Resident memory of this process; 0 where /proc does not tell.
fn own_memory_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
    pages.unwrap_or_default() * rustix::param::page_size() as u64
}
