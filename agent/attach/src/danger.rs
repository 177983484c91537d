//! Processes that return probes would harm. A probe is in every process that
//! maps its image, profiled or not, and so all of them count.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::error::InspectError;
use tlsprof_common::{ImageId, Pid};
use tlsprof_discover::ProcRoot;
use tlsprof_discover::elf::{ElfError, ElfView};
use tlsprof_discover::image::Mapping;
use tlsprof_discover::library::may_switch_stacks;
use tlsprof_discover::table::{ProcessSource, ProcessTable};

/// What return probes would do to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// It may switch stacks inside a probed function, and a return would find
    /// the address of another.
    SwitchesStacks,
    /// Its seccomp filter forbids the kernel's system call behind return probes.
    Seccomp,
}

/// A process that return probes would harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Danger {
    /// The process.
    pub process: Pid,
    /// Its name (comm); empty if it is gone.
    pub name: String,
    /// What would happen to it.
    pub(crate) harm: Harm,
}

impl fmt::Display for Danger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            process,
            name,
            harm,
        } = self;
        write!(f, "process {process} ({name}), which uses it, ")?;
        match harm {
            Harm::SwitchesStacks => write!(
                f,
                "may switch stacks in a handshake (coroutines, or an asynchronous engine): return probes would break it"
            ),
            Harm::Seccomp => write!(
                f,
                "is under seccomp, and on Linux 6.11 to 6.13 return probes would kill it"
            ),
        }
    }
}

/// Looks closer at a process.
pub trait Inspect {
    /// Whether an image of the process may switch stacks; None if it cannot be
    /// opened now.
    fn switches_stacks(&self, process: Pid, mapping: &Mapping) -> Option<bool>;
    /// Whether a seccomp filter limits its system calls.
    fn is_under_seccomp(&self, process: Pid) -> bool;
    /// Its name (comm).
    fn name(&self, process: Pid) -> String;
}

/// Finds the processes that return probes would harm. Looks once into each
/// image, however many processes map it.
#[derive(Debug)]
pub struct Dangers {
    seccomp_is_deadly: bool,
    /// Whether an image may switch stacks.
    judged: BTreeMap<ImageId, bool>,
}

impl Dangers {
    /// `kernel` is the kernel's release, as uname(2) has it.
    pub fn new(kernel: &str) -> Self {
        Self {
            seccomp_is_deadly: seccomp_kills(std::env::consts::ARCH, kernel),
            judged: BTreeMap::new(),
        }
    }

    /// Takes note of what is known of an image.
    pub fn note(&mut self, image: ImageId, switches_stacks: bool) {
        self.judged.insert(image, switches_stacks);
    }

    /// Whether an image was looked into.
    pub fn knows(&self, image: ImageId) -> bool {
        self.judged.contains_key(&image)
    }

    /// Forgets an image: its inode may be another file's from now on.
    pub fn forget(&mut self, image: ImageId) {
        self.judged.remove(&image);
    }

    /// The first danger for each of the `probed` images among these processes.
    /// Images of a process that maps none of the probed ones are not looked at.
    pub fn among<S: ProcessSource>(
        &mut self,
        processes: impl IntoIterator<Item = Pid>,
        table: &ProcessTable<S>,
        probed: &BTreeSet<ImageId>,
        host: &impl Inspect,
    ) -> BTreeMap<ImageId, Danger> {
        let inodes: BTreeSet<u64> = probed.iter().map(|image| image.inode).collect();
        let mut found = BTreeMap::new();
        for process in processes {
            let images = table.images_of(process);
            let alike: Vec<ImageId> = images
                .iter()
                .map(Mapping::image)
                .filter(|image| inodes.contains(&image.inode))
                .collect();
            let maps = |probed: &ImageId| alike.iter().any(|image| image.may_be(*probed));
            let at_stake: Vec<ImageId> = probed
                .iter()
                .copied()
                .filter(|image| !found.contains_key(image) && maps(image))
                .collect();
            if at_stake.is_empty() {
                continue;
            }
            if let Some(harm) = self.harm(process, images, host) {
                let name = host.name(process);
                let danger = Danger {
                    process,
                    name,
                    harm,
                };
                found.extend(at_stake.into_iter().map(|image| (image, danger.clone())));
            }
        }
        found
    }

    fn harm(&mut self, process: Pid, images: &[Mapping], host: &impl Inspect) -> Option<Harm> {
        let mut images = images.iter();
        if images.any(|mapping| self.switches_stacks(process, mapping, host)) {
            return Some(Harm::SwitchesStacks);
        }
        (self.seccomp_is_deadly && host.is_under_seccomp(process)).then_some(Harm::Seccomp)
    }

    fn switches_stacks(&mut self, process: Pid, mapping: &Mapping, host: &impl Inspect) -> bool {
        let image = mapping.image();
        if let Some(known) = self.judged.get(&image) {
            return *known;
        }
        let seen = host.switches_stacks(process, mapping);
        if let Some(switches) = seen {
            self.note(image, switches);
        }
        seen.unwrap_or(false)
    }
}

impl Inspect for ProcRoot {
    fn switches_stacks(&self, process: Pid, mapping: &Mapping) -> Option<bool> {
        match look_into(self, process, mapping) {
            Ok(switches) => Some(switches),
            Err(error) => {
                tracing::debug!(process, path = %mapping.path.display(), error = tlsprof_common::causes::one_line(&error), "image left out");
                // What is no sound image will not become one; the rest may be
                // opened through another process, or later.
                matches!(error, InspectError::Elf(_)).then_some(false)
            }
        }
    }

    fn is_under_seccomp(&self, process: Pid) -> bool {
        self.is_under_seccomp(process)
    }

    fn name(&self, process: Pid) -> String {
        let stat = self.stat(process).ok().flatten();
        stat.map(|stat| stat.name).unwrap_or_default()
    }
}

fn look_into(proc: &ProcRoot, process: Pid, mapping: &Mapping) -> Result<bool, InspectError> {
    match ElfView::open(mapping.open(proc, process)?.file) {
        Ok(view) => Ok(may_switch_stacks(&view)?),
        Err(ElfError::NotElf) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Linux 6.11 made return probes a system call on x86-64 (commit ff474a78cef5), which
/// seccomp filters forbid; on other machines they are a trap as ever. 6.14 lets it
/// through (commit cf6cb56ef244). Stable releases of 6.12 and 6.13 carry that fix too,
/// but nothing shows which: they are taken for broken.
fn seccomp_kills(machine: &str, release: &str) -> bool {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => {
            machine == "x86_64" && major == 6 && (11..=13).contains(&minor)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
