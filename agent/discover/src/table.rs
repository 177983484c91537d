//! The processes of this host, followed as they come and go.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Error;
use super::image::{MAX_IMAGES, Mapping};
use super::process::{CpuTime, Process};
use super::selection::Wanted;
use super::service::{Cgroup, ServiceName, service_name};
use tlsprof_common::{ImageId, LifetimeCpu, Pid, ProcessEvent};

mod accounts;
mod code;
mod select;
mod source;
mod upkeep;
mod usage;
mod view;

use accounts::{Accounts, ProcessCpu};
pub use source::ProcessSource;
pub use usage::ImageChange;
use usage::{ImageSet, ImageUsage};
pub use view::ServiceView;

/// Processes in the table, dead ones included; more are ignored and counted.
pub(crate) const MAX_PROCESSES: usize = 32_768;
/// Dead processes in the table, for evidence that comes late; the oldest go first.
pub(crate) const MAX_DEAD: usize = 4096;

/// What the table knows of one process.
#[derive(Clone, Debug)]
struct Entry {
    parent: Pid,
    /// None until it is read for the first time: the event of a fork has none.
    start_time: Option<u64>,
    service: ServiceName,
    cgroup: Cgroup,
    executable: Arc<Path>,
    /// Ascending by address. Shared only with processes of the same `selected`; empty when dead.
    images: ImageSet,
    /// Dead: where code of TLS libraries lay, for samples that come late.
    code: code::KnownCode,
    cpu: ProcessCpu,
    selected: bool,
    alive: bool,
    /// Distinguishes users of one pid in the queue of the dead. Grows from process to process, and with each
    /// program that one executes.
    life: u64,
}

impl Entry {
    fn is_alive_since(&self, start_time: u64) -> bool {
        self.alive && self.start_time.is_none_or(|known| known == start_time)
    }
}

/// Which process belongs to which service and maps which images.
///
/// It is fed by a scan, by the kernel side's events in their order, and by
/// mappings as they happen. Watch for events first and scan then, so that
/// nothing is lost in between; events that the scan knew already do no harm.
/// A later scan mends what lost events left wrong.
///
/// Without [`select`](Self::select) all services are profiled.
#[derive(Debug)]
pub struct ProcessTable<S> {
    source: S,
    /// Boxed, so that the keys lie close together: each record looks up several.
    entries: BTreeMap<Pid, Box<Entry>>,
    dead: VecDeque<(Pid, u64)>,
    lives: u64,
    usage: ImageUsage,
    /// Processes whose images are not those of their last report.
    remapped: BTreeSet<Pid>,
    /// Processes of which a mapping was reported that contradicts what is known of them.
    doubtful: BTreeSet<Pid>,
    accounts: Accounts,
    wanted: Wanted,
    /// Who listens there is selected, see [`follow_connection`](Self::follow_connection).
    port: Option<u16>,
    scanned: bool,
    ignored: u64,
}

impl<S: ProcessSource> ProcessTable<S> {
    /// An empty table.
    pub fn new(source: S) -> Self {
        Self {
            source,
            entries: BTreeMap::new(),
            dead: VecDeque::new(),
            lives: 0,
            usage: ImageUsage::default(),
            remapped: BTreeSet::new(),
            doubtful: BTreeSet::new(),
            accounts: Accounts::default(),
            wanted: Wanted::All,
            port: None,
            scanned: false,
            ignored: 0,
        }
    }

    /// Reads all processes. The first scan begins the profile: what processes
    /// used before it does not count; those found later began after it.
    /// Returns the processes that were thought to live, and have ended.
    ///
    /// # Errors
    /// [`Error::Read`] if /proc cannot be listed. A process that cannot be read
    /// is left out.
    pub fn scan(&mut self) -> Result<Vec<Pid>, Error> {
        let mut pids: BTreeSet<Pid> = self.source.pids()?.into_iter().collect();
        let mut ended: Vec<Pid> = self.live().collect();
        pids.extend(&ended);
        for pid in pids {
            self.refresh(pid);
        }
        self.scanned = true;
        ended.retain(|&pid| !self.is_alive(pid));
        Ok(ended)
    }

    /// Takes note of a fork, exec or exit.
    pub fn apply(&mut self, event: &ProcessEvent) {
        match event {
            ProcessEvent::Fork { parent, child, .. } => self.forked(*parent, *child),
            ProcessEvent::Exec {
                process,
                path,
                comm,
                cpu,
            } => self.executed(*process, path, comm, *cpu),
            ProcessEvent::Exit { process, cpu } => self.end(*process, Some(*cpu)),
        }
    }

    /// Takes note of a new executable mapping, as of a library loaded at run
    /// time. What is no image, or is known already, changes nothing.
    ///
    /// One that contradicts what is known may be newer, as of a library that was unloaded and
    /// loaded elsewhere, or older, from before an exec: the next
    /// [`take_changes`](Self::take_changes) reads the process again.
    pub fn mapped(&mut self, pid: Pid, mapping: Mapping) {
        if !self.entries.contains_key(&pid) {
            self.refresh(pid);
        }
        let Some(entry) = self.entries.get_mut(&pid).filter(|entry| entry.alive) else {
            return;
        };
        let is_same = |known: &Mapping| known.image() == mapping.image();
        let is_known = |known: &Mapping| is_same(known) && known.start == mapping.start;
        if !mapping.is_image() || entry.images.iter().any(is_known) {
            return;
        }
        let overlaps = |known: &Mapping| known.start < mapping.end && mapping.start < known.end;
        // Another part of an image that is known contradicts nothing.
        let moved = |known: &Mapping| is_same(known) && known.file_offset == mapping.file_offset;
        if entry.images.iter().any(|it| moved(it) || overlaps(it)) {
            self.doubtful.insert(pid);
            return;
        }
        if entry.images.iter().any(is_same) {
            return;
        }
        if entry.images.len() >= MAX_IMAGES {
            return;
        }
        let is_lower = |known: &Mapping| known.start < mapping.start;
        let place = entry.images.partition_point(is_lower);
        if let Some(images) = Arc::get_mut(&mut entry.images) {
            self.usage
                .add(std::slice::from_ref(&mapping), entry.selected);
            images.insert(place, mapping);
            self.remapped.insert(pid);
            return;
        }
        let mut images = entry.images.to_vec();
        images.insert(place, mapping);
        self.replace_images(pid, images);
    }

    /// Reads the CPU time of those selected live processes for which `wanted` holds. Do so
    /// before [`take_cpu`](Self::take_cpu), and now and then: the final value of a process comes
    /// as a sum, and is divided into user and system as they stood here last (all user, if it was
    /// never read).
    pub fn read_cpu(&mut self, wanted: impl Fn(Pid) -> bool) {
        let selected = self
            .entries
            .iter()
            .filter(|(pid, entry)| entry.alive && entry.selected && wanted(**pid));
        let pids: Vec<Pid> = selected.map(|(&pid, _)| pid).collect();
        for pid in pids {
            // Gone or unreadable: its exit is still to come.
            let Ok(Some(stat)) = self.source.stat(pid) else {
                continue;
            };
            let Some(entry) = self.entries.get_mut(&pid) else {
                continue;
            };
            if entry.is_alive_since(stat.start_time) {
                entry.start_time = Some(stat.start_time);
                entry.cpu.read(stat.cpu);
            }
        }
    }

    /// Takes the CPU time of those services for which `wanted` holds: what their selected processes, ended ones
    /// included, used since it was taken the last time, or else since the profile began, as of the last
    /// [`read_cpu`](Self::read_cpu). That of ended processes is kept for some thousand other services; what is
    /// beyond that is the time of `other`.
    pub fn take_cpu(&mut self, wanted: impl Fn(&str) -> bool) -> BTreeMap<ServiceName, CpuTime> {
        let mut taken = self.accounts.take(&wanted);
        let entries = self.entries.values_mut();
        for entry in entries.filter(|entry| entry.alive && entry.selected) {
            let has_run = entry.cpu.unsettled() != CpuTime::default();
            if has_run && wanted(entry.service.as_str()) {
                let used = entry.cpu.settle();
                *taken.entry(entry.service.clone()).or_default() += used;
            }
        }
        taken
    }

    /// Image changes among the selected processes since the last call.
    ///
    /// An image that loses all processes and gains others in between is not
    /// reported. Its inode number cannot have gone to another file if a probe is
    /// attached: the kernel holds the inode then.
    pub fn take_changes(&mut self) -> Vec<ImageChange> {
        for pid in std::mem::take(&mut self.doubtful) {
            self.refresh(pid);
        }
        let live = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.alive && entry.selected);
        self.usage
            .take_changes(live.map(|(&pid, entry)| (pid, &entry.images)))
    }

    /// Live processes, selected or not, that map other images than when they
    /// were reported last. A fork maps what its parent does: it is not reported.
    pub fn take_remapped(&mut self) -> Vec<Pid> {
        let remapped = std::mem::take(&mut self.remapped).into_iter();
        remapped.filter(|&pid| self.is_alive(pid)).collect()
    }

    /// Images that lost their last process, selected or not, since the last call.
    /// They may have others again by now; what was known of them need not hold.
    pub fn take_gone(&mut self) -> BTreeSet<ImageId> {
        self.usage.take_gone()
    }

    /// Has the next [`take_changes`](Self::take_changes) report an image again as
    /// gained, if it is in use by then: for one that could not be opened.
    pub fn report_again(&mut self, image: ImageId) {
        self.usage.report_again(image);
    }

    /// Reads a process again in which an image was not found; true if it is known not to map it
    /// any more. That it unmaps something is not reported.
    pub fn has_let_go(&mut self, pid: Pid, image: ImageId) -> bool {
        self.refresh(pid);
        !self.maps(pid, |mapped| mapped == image)
    }

    fn is_alive(&self, pid: Pid) -> bool {
        self.entries.get(&pid).is_some_and(|entry| entry.alive)
    }

    /// Reads a process as it is now; it may have ended, though that was not reported.
    fn refresh(&mut self, pid: Pid) {
        match self.read(pid) {
            Ok(Some(process)) => self.note(process),
            Ok(None) => self.end(pid, None),
            Err(_) => {}
        }
    }

    fn note(&mut self, process: Process) {
        let (pid, start) = (process.pid, process.start_time);
        match self.entries.get(&pid) {
            Some(entry) if entry.is_alive_since(start) => {
                // With its first thread goes what the kernel knows of its program.
                if process.has_executable() {
                    self.update(process);
                }
            }
            // Its exit was reported, but it is still on its way out.
            Some(entry) if !entry.alive && entry.start_time == Some(start) => {}
            Some(entry) if !entry.alive && entry.start_time.is_none() => {
                // Perhaps the same: do not count its time twice.
                let cpu = process.cpu;
                self.admit(process, cpu);
            }
            _ => {
                let baseline = if self.scanned {
                    CpuTime::default()
                } else {
                    process.cpu
                };
                self.admit(process, baseline);
            }
        }
    }

    fn forked(&mut self, parent: Pid, child: Pid) {
        if self.is_same_life(child) {
            return;
        }
        self.forget(child);
        if !self.is_alive(parent) {
            // Its images are forgotten already: better ask the child itself.
            self.refresh(child);
        }
        let Some(entry) = self.entries.get(&parent) else {
            return;
        };
        if self.entries.contains_key(&child) {
            return;
        }
        let entry = Entry {
            parent,
            start_time: None,
            cpu: ProcessCpu::default(),
            alive: true,
            ..(**entry).clone()
        };
        self.insert(child, entry);
    }

    /// True if the scan has seen this very process, and its fork is reported late.
    fn is_same_life(&self, pid: Pid) -> bool {
        let known = self.entries.get(&pid).filter(|entry| entry.alive);
        let Some(start_time) = known.and_then(|entry| entry.start_time) else {
            return false;
        };
        let stat = self.source.stat(pid).ok().flatten();
        stat.is_some_and(|stat| stat.start_time == start_time)
    }

    /// `cpu` is what it had used by then: what it used since, before this was known here, is
    /// its new program's.
    fn executed(&mut self, pid: Pid, path: &str, comm: &str, cpu: LifetimeCpu) {
        let process = self.read(pid).ok().flatten();
        let process = process.map(|process| process.executed(path));
        let mut known = self.entries.get_mut(&pid).filter(|entry| entry.alive);
        if let Some(entry) = &mut known {
            entry.cpu.reached(cpu);
            self.lives += 1;
            entry.life = self.lives;
        }
        match (process, known) {
            (Some(process), Some(entry)) if entry.is_alive_since(process.start_time) => {
                let cpu = entry.cpu.last();
                self.update(Process { cpu, ..process });
            }
            (Some(process), None) => self.note(process),
            (_, Some(entry)) => {
                let process = executed_and_gone(pid, entry.cgroup.clone(), path, comm);
                self.assume(process, Vec::new());
            }
            (None, None) => {
                let ended = self.entries.get(&pid);
                let cgroup = ended.map_or(Cgroup::Other, |entry| entry.cgroup.clone());
                let parent = ended.map_or(0, |entry| entry.parent);
                let process = executed_and_gone(pid, cgroup, path, comm);
                let process = Process { parent, ..process };
                let mut before = ProcessCpu::default();
                before.reached(cpu);
                self.admit(process, before.last());
            }
        }
    }
}

/// A process of which only the event of its last exec is left. Its control group
/// is still that of its parent.
fn executed_and_gone(pid: Pid, cgroup: Cgroup, path: &str, comm: &str) -> Process {
    let executable = PathBuf::from(path);
    Process {
        pid,
        parent: 0,
        // No process that can be read has started then.
        start_time: 0,
        name: comm.to_owned(),
        service: service_name(&cgroup, &executable, comm),
        executable,
        cgroup,
        cpu: CpuTime::default(),
    }
}

#[cfg(test)]
mod tests;
