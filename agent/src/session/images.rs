//! Which images are profiled, as processes and their images come and go.

use std::collections::BTreeSet;

use super::Session;
use crate::attach::registry::{InspectError, Reason};
use crate::causes::one_line;
use crate::discover::image::{Device, ImageId, Mapping, OpenError};
use crate::discover::table::ImageChange;
use crate::evidence::Pid;
use crate::kernel::mappings::Mapped;

impl Session {
    /// Takes note of what processes have mapped since the last turn.
    pub(super) fn take_mappings(&mut self) {
        let Self {
            watch,
            table,
            mappings_lost,
            ..
        } = self;
        let lost = watch.drain(|mapped| {
            let pid = mapped.pid;
            table.mapped(pid, mapping(mapped));
        });
        *mappings_lost += lost;
        if lost > 0 {
            self.look_everywhere();
        }
    }

    /// Keeps the watch on mappings going while CPUs go off line and come back; to be
    /// called about once a second.
    pub(super) fn follow_cpus(&mut self) {
        match self.watch.follow_cpus() {
            Ok(false) => {}
            Ok(true) => {
                tracing::info!("a CPU came on line");
                self.look_everywhere();
            }
            Err(error) => {
                let error = one_line(&error);
                tracing::debug!(error, "mappings on a CPU are not seen");
            }
        }
    }

    /// What was not seen may have been a TLS library.
    fn look_everywhere(&mut self) {
        if let Err(error) = self.table.scan() {
            tracing::warn!(error = one_line(&error), "processes could not be read");
        }
    }

    /// Attaches to images that came into use, and lets go of those out of use, or
    /// used by a process that return probes would harm.
    pub(super) fn follow_images(&mut self) {
        for image in self.table.take_gone() {
            self.dangers.forget(image);
        }
        for change in self.table.take_changes() {
            match change {
                ImageChange::Lost(image) => self.registry.lost(image),
                ImageChange::Gained {
                    image,
                    process,
                    mapping,
                } => self.inspect(image, process, &mapping),
            }
        }
        if !self.library {
            self.registry.leave_out(|| Reason::SwitchedOff);
        } else if let Err(reason) = &self.loaded.library {
            self.registry.leave_out(|| Reason::Kernel(reason.clone()));
        }
        self.avoid_harm();
        self.registry.attach_found(&mut self.loaded);
    }

    fn inspect(&mut self, image: ImageId, process: Pid, mapping: &Mapping) {
        match self.registry.inspect(&self.proc, process, mapping) {
            Ok(switches_stacks) => self.dangers.note(image, switches_stacks),
            Err(InspectError::Open(OpenError::Gone { .. })) => self.table.report_again(image),
            Err(error) => {
                let error = one_line(&error);
                tracing::debug!(path = %mapping.path.display(), error, "image left out");
            }
        }
    }

    /// Looks at the processes for which something is new: those that map an image
    /// found just now, and those that map others than before.
    fn avoid_harm(&mut self) {
        let found = self.registry.found();
        let mut suspects: BTreeSet<Pid> = self.table.take_remapped().into_iter().collect();
        if suspects.is_empty() && found.is_empty() {
            return;
        }
        if !found.is_empty() {
            suspects.extend(self.table.users_of(&found));
        }
        let probed = self.registry.probed();
        let dangers = self
            .dangers
            .among(suspects, &self.table, &probed, &self.proc);
        for (image, danger) in dangers {
            self.registry.refuse(image, danger);
        }
    }
}

fn mapping(mapped: Mapped) -> Mapping {
    Mapping {
        start: mapped.start,
        end: mapped.end,
        file_offset: mapped.file_offset,
        device: Device {
            major: mapped.device.0,
            minor: mapped.device.1,
        },
        inode: mapped.inode,
        path: mapped.path,
        deleted: false,
    }
}
