//! Limits the table to what the user wants to have profiled.

use std::collections::BTreeSet;

use super::{ProcessSource, ProcessTable};
use crate::ports::ListeningPorts;
use crate::selection::{Selection, SelectionError};
use tlsprof_common::{Opening, Pid, Role};

impl<S: ProcessSource> ProcessTable<S> {
    /// Limits the profile to the selected processes, and begins it anew: what was
    /// accounted before is forgotten.
    ///
    /// A process or port selects these processes and all their descendants, also
    /// those yet to come; a service selects by name.
    ///
    /// # Errors
    /// [`SelectionError`] if nothing is selected; the table is as before then.
    pub fn select(
        &mut self,
        selection: &Selection,
        ports: &ListeningPorts,
    ) -> Result<(), SelectionError> {
        let roots: BTreeSet<Pid> = match selection {
            Selection::All | Selection::Service(_) | Selection::Named(_) => BTreeSet::new(),
            Selection::Pid(wanted) => self.live().filter(|pid| pid == wanted).collect(),
            Selection::Port(port) => {
                let listening: BTreeSet<Pid> = ports.listening_on(*port).collect();
                self.live().filter(|pid| listening.contains(pid)).collect()
            }
        };
        let live = self.entries.values().filter(|entry| entry.alive);
        self.wanted = selection.resolve(live.map(|entry| &entry.service), &roots)?;
        self.port = match selection {
            Selection::Port(port) => Some(*port),
            _ => None,
        };
        let family = self.with_descendants(roots);
        self.reselect(&family);
        Ok(())
    }

    /// Names in a selection that no live process's service has.
    pub fn unmatched(&self, selection: &Selection) -> Vec<SelectionError> {
        let live = self.entries.values().filter(|entry| entry.alive);
        selection.unmatched(live.map(|entry| &entry.service))
    }

    /// The port whose listeners are selected, if the user named one.
    pub const fn selected_port(&self) -> Option<u16> {
        self.port
    }

    /// Selects who has a connection that was accepted on the selected port, if it is not
    /// selected yet: it, or whose descendant it is, listens there now. Returns whether it did.
    pub fn follow_connection(&mut self, opening: &Opening) -> bool {
        let process = opening.owner.process;
        if opening.role != Role::Server || self.port != Some(opening.port) {
            return false;
        }
        if !self.entries.contains_key(&process) {
            self.refresh(process);
        }
        !self.is_selected(process) && self.adopt(process)
    }

    /// Selects the processes that listen on the selected port now, and their descendants,
    /// as well.
    pub fn follow_listeners(&mut self, ports: &ListeningPorts) {
        let Some(port) = self.port else {
            return;
        };
        let listening = ports.listening_on(port).collect();
        for pid in self.with_descendants(listening) {
            self.adopt(pid);
        }
    }

    /// Those of the processes that listen on the selected port whose parent does not.
    pub fn heads_of_listeners(&self, ports: &ListeningPorts) -> Vec<Pid> {
        let listening: BTreeSet<Pid> = self
            .port
            .map(|port| ports.listening_on(port).collect())
            .unwrap_or_default();
        let is_head = |pid: &Pid| {
            let entry = self.entries.get(pid).filter(|entry| entry.alive);
            entry.is_some_and(|entry| !listening.contains(&entry.parent))
        };
        listening.iter().copied().filter(is_head).collect()
    }

    /// Selects a live process that was not, with all that it did since the profile began.
    fn adopt(&mut self, pid: Pid) -> bool {
        let Some(mut entry) = self.entries.remove(&pid) else {
            return false;
        };
        let adopted = entry.alive && !entry.selected;
        if adopted {
            entry.selected = true;
            // New before old: an image in both is in use throughout.
            let old = std::mem::take(&mut entry.images);
            entry.images = self.share(pid, &entry, old.to_vec());
            self.usage.release(old, false);
        }
        self.entries.insert(pid, entry);
        adopted
    }

    fn with_descendants(&self, mut family: BTreeSet<Pid>) -> BTreeSet<Pid> {
        loop {
            let before = family.len();
            for (&pid, entry) in &self.entries {
                if family.contains(&entry.parent) {
                    family.insert(pid);
                }
            }
            if family.len() == before {
                return family;
            }
        }
    }

    fn reselect(&mut self, family: &BTreeSet<Pid>) {
        self.accounts.clear();
        self.usage.clear();
        for (pid, mut entry) in std::mem::take(&mut self.entries) {
            entry.cpu.settle();
            entry.selected = self.wanted.includes(&entry.service, family.contains(&pid));
            // No set may be shared any more by a selected and another process.
            let images = std::mem::take(&mut entry.images);
            entry.images = self.share(pid, &entry, images.to_vec());
            self.entries.insert(pid, entry);
        }
    }
}
