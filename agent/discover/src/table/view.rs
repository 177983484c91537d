//! What the table answers.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::code::{KnownCode, is_loader, is_tls_library};
use super::{Entry, ProcessSource, ProcessTable};
use crate::image::Mapping;
use crate::selection::Wanted;
use crate::service::ServiceName;
use tlsprof_common::{ImageId, Pid};

/// A service with its live processes.
#[derive(Clone, Debug)]
pub struct ServiceView<'a> {
    /// Its name.
    pub name: &'a ServiceName,
    /// The executable of most of its processes, as they see it; empty where the
    /// kernel does not show it.
    pub executable: &'a Path,
    /// Its live processes, ascending; never empty.
    pub processes: Vec<Pid>,
    /// The images that they map, each with one process that does.
    pub images: Vec<(Pid, &'a Mapping)>,
}

impl<S: ProcessSource> ProcessTable<S> {
    /// The service of a process that lives, or has ended lately.
    pub fn service_of(&self, pid: Pid) -> Option<&ServiceName> {
        self.entries.get(&pid).map(|entry| &entry.service)
    }

    /// Executables of a process, its parent, and so on, as they see them. The table may hold an
    /// outdated parent, so that their number is bounded.
    pub fn executables_up_from(&self, pid: Pid) -> impl Iterator<Item = &Path> {
        const GENERATIONS: usize = 64;
        let first = self.entries.get(&pid);
        std::iter::successors(first, |entry| self.entries.get(&entry.parent))
            .take(GENERATIONS)
            .map(|entry| &*entry.executable)
    }

    /// True if the process lives, or has ended lately, and is selected.
    pub fn is_selected(&self, pid: Pid) -> bool {
        self.entries.get(&pid).is_some_and(|entry| entry.selected)
    }

    /// True if every process is selected.
    pub fn selects_all(&self) -> bool {
        self.wanted == Wanted::All
    }

    /// A mark for [`has_begun_since`](Self::has_begun_since).
    pub const fn mark(&self) -> u64 {
        self.lives
    }

    /// Whether a process, which lives or has ended lately, was forked after the mark was made, or executed its
    /// program after it.
    pub fn has_begun_since(&self, pid: Pid, mark: u64) -> bool {
        let entry = self.entries.get(&pid);
        entry.is_some_and(|entry| entry.life > mark)
    }

    /// Live processes, selected or not, ascending.
    pub fn live(&self) -> impl Iterator<Item = Pid> {
        self.entries
            .iter()
            .filter(|(_, entry)| entry.alive)
            .map(|(&pid, _)| pid)
    }

    /// Selected services that have live processes, by name.
    pub fn services(&self) -> Vec<ServiceView<'_>> {
        let mut members: BTreeMap<&ServiceName, Vec<(Pid, &Entry)>> = BTreeMap::new();
        for (pid, entry) in self.live_selected() {
            members
                .entry(&entry.service)
                .or_default()
                .push((pid, entry));
        }
        members
            .into_iter()
            .map(|(name, members)| view(name, &members))
            .collect()
    }

    /// Live processes, selected or not, that map one of these images, or one that [may be](ImageId::may_be)
    /// the same file.
    pub fn users_of<'a>(&'a self, images: &'a BTreeSet<ImageId>) -> impl Iterator<Item = Pid> + 'a {
        let inodes: BTreeSet<u64> = images.iter().map(|image| image.inode).collect();
        let wanted = move |mapping: &Mapping| {
            inodes.contains(&mapping.inode)
                && images.iter().any(|image| image.may_be(mapping.image()))
        };
        self.entries
            .iter()
            .filter(move |(_, entry)| entry.images.iter().any(&wanted))
            .map(|(&pid, _)| pid)
    }

    /// The images that a process maps, selected or not, ascending by address; none when it has
    /// ended.
    pub fn images_of(&self, pid: Pid) -> &[Mapping] {
        self.entries.get(&pid).map_or(&[], |entry| &entry.images)
    }

    /// Whether a process, selected or not, maps an image for which `wanted` holds.
    /// False when it has ended.
    pub fn maps(&self, pid: Pid, wanted: impl Fn(ImageId) -> bool) -> bool {
        let entry = self.entries.get(&pid);
        entry.is_some_and(|entry| entry.images.iter().any(|mapping| wanted(mapping.image())))
    }

    /// Whether any live process, selected or not, maps an image.
    pub fn is_mapped(&self, image: ImageId) -> bool {
        self.usage.is_in_use(image)
    }

    /// Processes that the table had no room for.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    fn live_selected(&self) -> impl Iterator<Item = (Pid, &Entry)> {
        let live = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.alive && entry.selected);
        live.map(|(&pid, entry)| (pid, &**entry))
    }

    /// Whether an address in a process, which lives or has ended lately, lies in the
    /// code of a library that does nothing but TLS and its cryptography. False where
    /// that is not known.
    pub fn is_in_tls_library(&self, pid: Pid, address: u64) -> bool {
        self.is_in(pid, address, is_tls_library, |code| &code.tls)
    }

    /// Whether an address in such a process lies in its dynamic loader.
    pub fn is_in_loader(&self, pid: Pid, address: u64) -> bool {
        self.is_in(pid, address, is_loader, |code| &code.loader)
    }

    /// Whether an address in such a process lies in any image: not, if the process made the code
    /// there itself. Of one that has ended that is not known: true.
    pub fn is_in_image(&self, pid: Pid, address: u64) -> bool {
        let images = self.images_of(pid);
        let holds = |image: &Mapping| (image.start..image.end).contains(&address);
        images.is_empty() || images.iter().any(holds)
    }

    fn is_in(
        &self,
        pid: Pid,
        address: u64,
        is: fn(&Path) -> bool,
        ended: fn(&KnownCode) -> &[Range<u64>],
    ) -> bool {
        let Some(entry) = self.entries.get(&pid) else {
            return false;
        };
        let mut images = entry.images.iter();
        let holds = |image: &Mapping| (image.start..image.end).contains(&address);
        images.any(|image| holds(image) && is(&image.path))
            || ended(&entry.code)
                .iter()
                .any(|code| code.contains(&address))
    }
}

fn view<'a>(name: &'a ServiceName, members: &[(Pid, &'a Entry)]) -> ServiceView<'a> {
    let mut seen = HashSet::new();
    let mut images = Vec::new();
    let mut last: Option<&Entry> = None;
    for &(pid, entry) in members {
        // Workers map what their master did when it forked them: one look for hundreds.
        if last.is_some_and(|last| Arc::ptr_eq(&last.images, &entry.images)) {
            continue;
        }
        last = Some(entry);
        let new = entry
            .images
            .iter()
            .filter(|mapping| seen.insert(mapping.image()));
        images.extend(new.map(|mapping| (pid, mapping)));
    }
    ServiceView {
        name,
        executable: most_common(members.iter().map(|(_, entry)| &*entry.executable)),
        processes: members.iter().map(|&(pid, _)| pid).collect(),
        images,
    }
}

/// Among equals the first, which is that of the oldest process.
fn most_common<'a>(paths: impl Iterator<Item = &'a Path>) -> &'a Path {
    let mut counts: Vec<(&Path, usize)> = Vec::new();
    for path in paths {
        match counts.iter_mut().find(|(known, _)| *known == path) {
            Some((_, count)) => *count += 1,
            None => counts.push((path, 1)),
        }
    }
    counts
        .iter()
        .rev()
        .max_by_key(|&&(_, count)| count)
        .map_or(Path::new(""), |&(path, _)| path)
}
