//! Keeps processes, images in use and accounts in step.

use tracing::debug;

use super::accounts::ProcessCpu;
use super::code::KnownCode;
use super::usage::ImageSet;
use super::{Entry, MAX_DEAD, MAX_PROCESSES, ProcessSource, ProcessTable};
use crate::Error;
use crate::image::Mapping;
use crate::process::{CpuTime, Process};
use tlsprof_common::causes::one_line;
use tlsprof_common::{LifetimeCpu, Pid};

impl<S: ProcessSource> ProcessTable<S> {
    /// A process that is new to the table.
    pub(super) fn admit(&mut self, process: Process, baseline: CpuTime) {
        let pid = process.pid;
        self.forget(pid);
        let images = self.read_images(pid);
        let entry = self.entry(process, ProcessCpu::since(baseline));
        self.insert(pid, entry);
        self.replace_images(pid, images);
    }

    /// A process that the table knows, read once more.
    pub(super) fn update(&mut self, process: Process) {
        let images = self.read_images(process.pid);
        self.assume(process, images);
    }

    /// A process that the table knows is now this. Its parent and its place in
    /// the family stay: that the kernel gives orphans to init changes nothing.
    pub(super) fn assume(&mut self, process: Process, images: Vec<Mapping>) {
        let pid = process.pid;
        let Some(mut entry) = self.entries.remove(&pid) else {
            return;
        };
        entry.cpu.read(process.cpu);
        // What it used until now was used by the service that it was in until now.
        self.settle(&mut entry);
        let selected = self.wanted.includes(&process.service, entry.selected);
        if selected != entry.selected {
            self.release(&mut entry);
        }
        entry.selected = selected;
        entry.start_time = Some(process.start_time);
        entry.service = process.service;
        entry.cgroup = process.cgroup;
        entry.executable = process.executable.into();
        entry.code = KnownCode::default();
        self.entries.insert(pid, entry);
        self.replace_images(pid, images);
    }

    fn entry(&self, process: Process, cpu: ProcessCpu) -> Entry {
        let inherited = self
            .entries
            .get(&process.parent)
            .is_some_and(|parent| parent.selected);
        Entry {
            selected: self.wanted.includes(&process.service, inherited),
            parent: process.parent,
            start_time: Some(process.start_time),
            service: process.service,
            cgroup: process.cgroup,
            executable: process.executable.into(),
            images: ImageSet::default(),
            code: KnownCode::default(),
            cpu,
            alive: true,
            life: 0,
        }
    }

    /// Adds a process, if there is room.
    pub(super) fn insert(&mut self, pid: Pid, mut entry: Entry) {
        if self.entries.len() >= MAX_PROCESSES && !self.drop_oldest_dead() {
            self.ignored += 1;
            self.release(&mut entry);
            return;
        }
        self.lives += 1;
        entry.life = self.lives;
        self.entries.insert(pid, Box::new(entry));
    }

    /// Gives a process other images than it had.
    pub(super) fn replace_images(&mut self, pid: Pid, images: Vec<Mapping>) {
        let Some(mut entry) = self.entries.remove(&pid) else {
            return;
        };
        if *entry.images != images {
            // New before old: an image in both is in use throughout.
            let new = self.share(pid, &entry, images);
            let old = std::mem::replace(&mut entry.images, new);
            self.usage.release(old, entry.selected);
            self.remapped.insert(pid);
        }
        self.entries.insert(pid, entry);
    }

    /// A counted set of these images: the parent's if it has the same, or that of the process
    /// with the next lower number, which of many workers is another one.
    pub(super) fn share(&mut self, pid: Pid, entry: &Entry, images: Vec<Mapping>) -> ImageSet {
        let parent = self.entries.get(&entry.parent);
        let lower = self.entries.range(..pid).next_back();
        let lower = lower.map(|(_, lower)| lower);
        let mut others = parent.into_iter().chain(lower).map(|other| &**other);
        let alike = |other: &&Entry| other.selected == entry.selected && *other.images == images;
        if let Some(other) = others.find(alike) {
            return other.images.clone();
        }
        self.usage.add(&images, entry.selected);
        images.into()
    }

    /// Takes the images from a process.
    pub(super) fn release(&mut self, entry: &mut Entry) {
        let images = std::mem::take(&mut entry.images);
        self.usage.release(images, entry.selected);
    }

    fn settle(&mut self, entry: &mut Entry) {
        let used = entry.cpu.settle();
        if entry.selected {
            self.accounts.add(&entry.service, used);
        }
    }

    /// The process ended: with this CPU time, or unseen. If its end is reported
    /// after it was noticed, what it used in between still counts.
    pub(super) fn end(&mut self, pid: Pid, cpu: Option<LifetimeCpu>) {
        let Some(mut entry) = self.entries.remove(&pid) else {
            return;
        };
        if let Some(cpu) = cpu {
            entry.cpu.reached(cpu);
        }
        self.settle(&mut entry);
        if entry.alive {
            entry.alive = false;
            entry.code = KnownCode::of(&entry.images);
            self.release(&mut entry);
            self.dead.push_back((pid, entry.life));
        }
        self.entries.insert(pid, entry);
        while self.dead.len() > MAX_DEAD {
            self.drop_oldest_dead();
        }
    }

    /// The pid goes to another process.
    pub(super) fn forget(&mut self, pid: Pid) {
        self.end(pid, None);
        self.entries.remove(&pid);
    }

    fn drop_oldest_dead(&mut self) -> bool {
        while let Some((pid, life)) = self.dead.pop_front() {
            if self
                .entries
                .get(&pid)
                .is_some_and(|entry| entry.life == life)
            {
                self.entries.remove(&pid);
                return true;
            }
        }
        false
    }

    /// Reads a process; None if it is gone.
    pub(super) fn read(&self, pid: Pid) -> Result<Option<Process>, Error> {
        self.source.process(pid).inspect_err(|error| {
            debug!(pid, error = one_line(error), "process left out");
        })
    }

    fn read_images(&self, pid: Pid) -> Vec<Mapping> {
        let images = self.source.images(pid).unwrap_or_else(|error| {
            debug!(
                pid,
                error = one_line(&error),
                "images of the process not seen"
            );
            None
        });
        images.unwrap_or_default()
    }
}
