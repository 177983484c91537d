//! The maps in which virtual machines name the code that they compile.

use std::collections::HashMap;
use std::time::SystemTime;

use super::images::Images;
use tlsprof_common::{ImageId, Pid};
use tlsprof_discover::ProcRoot;

/// Bookings, one a second, until a process is looked at again: a map may come, or be written anew.
const AGAIN: u64 = 5;
/// Processes that are remembered.
const MAX_PROCESSES: usize = 4096;

/// What is known of the map of a process.
#[derive(Debug)]
struct Known {
    looked: u64,
    version: Option<(ImageId, SystemTime)>,
}

/// Maps of all processes.
#[derive(Debug, Default)]
pub(super) struct Maps {
    known: HashMap<Pid, Known>,
    now: u64,
}

impl Maps {
    /// The map of a process, which then is among the images. None if it has none.
    pub(super) fn of(
        &mut self,
        process: Pid,
        proc: &ProcRoot,
        images: &mut Images,
    ) -> Option<ImageId> {
        let known = self.known.get(&process);
        if known.is_none_or(|known| self.now >= known.looked + AGAIN) {
            let before = known.and_then(|known| known.version);
            let version = read(before, process, proc, images);
            if self.known.len() >= MAX_PROCESSES {
                self.known.clear();
            }
            let looked = self.now;
            self.known.insert(process, Known { looked, version });
        }
        let (id, _) = self.known.get(&process)?.version?;
        images.hit(id).then_some(id)
    }

    /// To be called once for each booking.
    pub(super) const fn turn(&mut self) {
        self.now += 1;
    }
}

/// Opens the map, if that is not what was there `before`.
fn read(
    before: Option<(ImageId, SystemTime)>,
    process: Pid,
    proc: &ProcRoot,
    images: &mut Images,
) -> Option<(ImageId, SystemTime)> {
    let map = proc.perf_map(process).ok()?;
    let version = Some((map.id, map.written));
    if version != before || !images.hit(map.id) {
        images.replace_by_map(map.id, map.file);
    }
    version
}
