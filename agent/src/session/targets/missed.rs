//! What processes map while a profile runs, and what was missed of them.

use std::collections::BTreeMap;
use std::time::Instant;

use super::Targets;
use crate::session::shared::monotonic_now;
use tlsprof_common::causes::one_line;
use tlsprof_common::{Device, Loss, Pid};
use tlsprof_discover::image::Mapping;
use tlsprof_kernel::loaded::Loaded;
use tlsprof_kernel::mappings::Mapped;

impl Targets {
    /// Takes note of what processes have mapped since the last turn.
    pub(in crate::session) fn take_mappings(&mut self) {
        let Self { watch, table, .. } = self;
        let lost = watch.drain(|mapped| {
            let pid = mapped.pid;
            table.mapped(pid, mapping(mapped));
        });
        self.mappings_lost += lost;
        if lost > 0 {
            self.look_everywhere();
        }
    }

    /// Records of mappings that were lost.
    pub(in crate::session) const fn mappings_lost(&self) -> u64 {
        self.mappings_lost
    }

    /// Looks at all processes where some may have been missed; to be called about once a second.
    /// `drained`: the event ring was emptied in this turn. What waits there is older than what a look
    /// finds, and would undo it.
    pub(in crate::session) fn find_missed(&mut self, loaded: &Loaded, drained: bool) {
        self.follow_cpus();
        let lost = loaded.losses().get(Loss::EventRingFull as usize).copied();
        let lost = lost.unwrap_or_default();
        if drained && self.lost_events.is_due(lost, Instant::now()) {
            tracing::info!("events were lost: examining all processes again");
            self.look_everywhere();
        }
    }

    /// Processes that were found to have ended, with the time of that.
    pub(in crate::session) fn take_ended(&mut self) -> BTreeMap<Pid, u64> {
        std::mem::take(&mut self.ended)
    }

    /// Keeps the watch on mappings going while CPUs go off line and come back.
    fn follow_cpus(&mut self) {
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

    /// What was not seen may have been a TLS library, or a process.
    fn look_everywhere(&mut self) {
        match self.table.scan() {
            Ok(ended) => {
                let now = u64::try_from(monotonic_now().as_nanos()).unwrap_or(u64::MAX);
                self.ended.extend(ended.into_iter().map(|pid| (pid, now)));
            }
            Err(error) => tracing::warn!(error = one_line(&error), "processes could not be read"),
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
