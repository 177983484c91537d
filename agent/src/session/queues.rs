//! Accept queues of the services: read from the kernel every second, in each of their
//! network namespaces.

mod owners;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::shared::{read, write};
use super::targets::Targets;
use owners::Owners;
use tlsprof_common::Pid;
use tlsprof_common::causes::one_line;
use tlsprof_discover::ProcRoot;
use tlsprof_discover::ports::ListeningPorts;
use tlsprof_discover::table::ServiceView;
use tlsprof_evidence::accept_queue::{AcceptQueues, Overflows};
use tlsprof_kernel::sock_diag::{ListeningSocket, SockDiag};
use tlsprof_ledger::SharedLedger;
use tlsprof_outlet::doctor::State;

/// Time between two readings, at least. The kernel walks through a table of all its
/// listening sockets for each network namespace.
const PERIOD: Duration = Duration::from_secs(1);
/// Least idle time after a reading, as a multiple of how long the reading took: readings use at
/// most half a percent of a CPU.
const MIN_IDLE_FACTOR: u32 = 200;
/// Network namespaces that are read; each takes an open file.
const NAMESPACES: usize = 256;

/// What is read of accept queues.
#[derive(Debug)]
pub(super) struct Queues {
    namespaces: BTreeMap<PathBuf, Namespace>,
    /// Cookies of the sockets that were there the last time.
    known: BTreeSet<u64>,
    next: Instant,
    /// Why a namespace could not be read, the last time.
    refusal: Option<String>,
}

/// One network namespace.
#[derive(Debug, Default)]
struct Namespace {
    diag: Option<SockDiag>,
    overflows: Overflows,
    /// The kernel will not change its mind.
    refused: bool,
}

/// A listening socket and its overflows since the last reading.
type Reading = Vec<(ListeningSocket, u64)>;

impl Queues {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            namespaces: BTreeMap::new(),
            known: BTreeSet::new(),
            next: now,
            refusal: None,
        }
    }

    /// Reads the accept queues into the ledger, if it is time or the last chance. True if there is a
    /// new socket that nobody is known to have.
    pub(super) fn turn(
        &mut self,
        targets: &Targets,
        ports: &ListeningPorts,
        ledger: &SharedLedger,
        last: bool,
    ) -> bool {
        if Instant::now() < self.next && !last {
            return false;
        }
        let services = targets.table.services();
        let reading = self.read(&targets.proc, &services);
        let mut queues = by_service(&Owners::new(&services, ports), &reading);
        let worth = targets.worth_booking(&read(ledger));
        queues.retain(|name, one| {
            worth.contains(name) || one.overflows > 0 || one.fullest.length > 0
        });
        write(ledger).record_accept_queues(&queues);
        self.has_news(&reading, ports)
    }

    fn has_news(&mut self, reading: &Reading, ports: &ListeningPorts) -> bool {
        let cookies = reading.iter().map(|(socket, _)| socket.cookie).collect();
        let before = std::mem::replace(&mut self.known, cookies);
        reading.iter().any(|(socket, _)| {
            !before.contains(&socket.cookie) && ports.holders(socket.inode).is_none()
        })
    }

    /// What it means that accept queues could not be read.
    pub(super) fn note(&self) -> Option<String> {
        let reason = self.refusal.as_ref()?;
        Some(format!(
            "Not all accept queues could be read; their overflows are missing: {reason}."
        ))
    }

    /// Reads the queues in the network namespaces of these services.
    fn read(&mut self, proc: &ProcRoot, services: &[ServiceView<'_>]) -> Reading {
        let began = Instant::now();
        let members = members(proc, services);
        self.namespaces.retain(|name, _| members.contains_key(name));
        let mut reading = Reading::new();
        if members.len() > NAMESPACES {
            self.refusal = Some(format!("more than {NAMESPACES} network namespaces"));
        }
        for (name, processes) in members.iter().take(NAMESPACES) {
            reading.extend(self.read_namespace(proc, name, processes));
        }
        self.next = Instant::now() + PERIOD.max(began.elapsed() * MIN_IDLE_FACTOR);
        reading
    }

    fn read_namespace(&mut self, proc: &ProcRoot, name: &Path, processes: &[Pid]) -> Reading {
        let namespace = self.namespaces.entry(name.to_owned()).or_default();
        if namespace.refused {
            return Reading::new();
        }
        match namespace.read(proc, name, processes) {
            Ok(reading) => reading,
            Err(error) => {
                // Answers that still come are for nobody.
                namespace.diag = None;
                namespace.refused = is_final(&error);
                self.refusal = Some(reason(&error));
                Reading::new()
            }
        }
    }
}

fn by_service(owners: &Owners<'_>, reading: &Reading) -> BTreeMap<String, AcceptQueues> {
    let mut services: BTreeMap<String, AcceptQueues> = BTreeMap::new();
    for (socket, overflows) in reading {
        if let Some(service) = owners.of(socket) {
            let queues = services.entry(service.to_owned()).or_default();
            queues.add(socket.into(), *overflows);
        }
    }
    services
}

impl Namespace {
    /// The overflows are read first, see [`Overflows`]. Nothing if its processes are
    /// gone.
    fn read(&mut self, proc: &ProcRoot, name: &Path, processes: &[Pid]) -> io::Result<Reading> {
        let counted = processes.iter().find_map(|pid| proc.listen_overflows(*pid));
        let (Some(counted), Some(diag)) = (counted, self.diag(proc, name, processes)?) else {
            return Ok(Reading::new());
        };
        let sockets = diag.listeners()?;
        let overflows = self.overflows.take(counted, &sockets);
        let of = |socket: &ListeningSocket| overflows.get(&socket.cookie).copied();
        let each = sockets.into_iter();
        Ok(each
            .map(|one| (one, of(&one).unwrap_or_default()))
            .collect())
    }

    /// The own namespace needs no right to go elsewhere.
    fn diag(
        &mut self,
        proc: &ProcRoot,
        name: &Path,
        processes: &[Pid],
    ) -> io::Result<Option<&SockDiag>> {
        if self.diag.is_none() {
            self.diag = if proc.own_network_namespace().as_deref() == Some(name) {
                Some(SockDiag::open()?)
            } else {
                let mut files = processes
                    .iter()
                    .filter_map(|pid| proc.open_network_namespace(*pid).ok());
                let open = |file: File| SockDiag::open_in(file.as_fd());
                files.next().map(open).transpose()?
            };
        }
        Ok(self.diag.as_ref())
    }
}

/// Without the right to go to a namespace, or without the kernel's module, no later
/// attempt will do better; and each makes the kernel look for the module.
fn is_final(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound
    )
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "the kernel lists no TCP sockets (sock_diag, module tcp_diag)".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "no permission to enter another network namespace (CAP_SYS_ADMIN)".to_owned()
        }
        _ => one_line(error),
    }
}

/// Whether accept queues can be read here.
pub(super) fn works() -> State {
    let here = SockDiag::open().and_then(|diag| diag.listeners());
    if let Err(error) = here {
        return State::Unavailable(reason(&error));
    }
    let own = File::open("/proc/self/ns/net");
    match own.and_then(|namespace| SockDiag::open_in(namespace.as_fd())) {
        Ok(_) => State::Available,
        Err(error) => State::Degraded(reason(&error)),
    }
}

/// The processes of the services in each network namespace.
fn members(proc: &ProcRoot, services: &[ServiceView<'_>]) -> BTreeMap<PathBuf, Vec<Pid>> {
    let mut members: BTreeMap<PathBuf, Vec<Pid>> = BTreeMap::new();
    for pid in services.iter().flat_map(|service| &service.processes) {
        if let Some(namespace) = proc.network_namespace(*pid) {
            members.entry(namespace).or_default().push(*pid);
        }
    }
    members
}
