//! Limits the table to what the user wants to have profiled.

use std::collections::BTreeSet;

use super::{ProcessSource, ProcessTable};
use crate::discover::ports::ListeningPorts;
use crate::discover::selection::{Selection, SelectionError};
use crate::evidence::Pid;

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
        let family = self.with_descendants(roots);
        self.reselect(&family);
        Ok(())
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
