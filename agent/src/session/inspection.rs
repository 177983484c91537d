//! Examines images in threads beside the session: one of hundreds of megabytes takes seconds, in
//! which evidence would be waiting. Files are opened at once, while their processes live.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tlsprof_attach::error::InspectError;
use tlsprof_attach::registry::{Inspected, inspect};
use tlsprof_common::{ImageId, Pid, privilege};
use tlsprof_discover::ProcRoot;
use tlsprof_discover::image::{Mapping, OpenError, OpenImage};

/// Threads at most. Each examines what came into use at the same time, which is mostly what
/// one process maps: a large image does not hold up those of other processes.
const THREADS: usize = 4;
/// Files of selected services that are open at the same time, at most.
const OPEN: usize = 64;
/// From here on the log says so.
const LONG: Duration = Duration::from_secs(1);
/// From here on nobody hurries for an image: it may never be read.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two attempts at images that cannot be opened.
const RETRY: Duration = Duration::from_secs(10);

/// What was found in an image.
pub(super) struct Answer {
    pub(super) mapping: Mapping,
    /// A selected service maps it: a TLS library in it is of interest.
    pub(super) selected: bool,
    pub(super) result: Result<Inspected, InspectError>,
}

type Examined = (Mapping, Result<Inspected, InspectError>);

/// An image that is being examined.
struct Pending {
    /// A selected service maps it.
    selected: bool,
    since: Instant,
}

impl Pending {
    fn new(selected: bool) -> Self {
        let since = Instant::now();
        Self { selected, since }
    }
}

/// Images that are being examined.
pub(super) struct Inspection {
    pending: BTreeMap<ImageId, Pending>,
    /// Those that are not open yet, with a process that maps them.
    closed: VecDeque<(Pid, Mapping)>,
    /// Those that no thread has yet.
    opened: Vec<(Mapping, OpenImage)>,
    threads: Vec<JoinHandle<()>>,
    sender: Sender<Examined>,
    examined: Receiver<Examined>,
    /// Those to be tried again.
    failed: BTreeSet<ImageId>,
    tried_at: Instant,
}

impl Inspection {
    pub(super) fn new() -> Self {
        let (sender, examined) = channel();
        Self {
            pending: BTreeMap::new(),
            closed: VecDeque::new(),
            opened: Vec::new(),
            threads: Vec::new(),
            sender,
            examined,
            failed: BTreeSet::new(),
            tried_at: Instant::now(),
        }
    }

    /// Has an image of a selected service examined.
    pub(super) fn request(&mut self, process: Pid, mapping: Mapping) {
        match self.pending.entry(mapping.image()) {
            Entry::Occupied(mut pending) => pending.get_mut().selected = true,
            Entry::Vacant(place) => {
                place.insert(Pending::new(true));
                self.closed.push_back((process, mapping));
            }
        }
    }

    /// Has an image of any process examined, which that process has open now.
    ///
    /// # Errors
    ///
    /// It cannot be opened through that process.
    pub(super) fn request_now(
        &mut self,
        proc: &ProcRoot,
        process: Pid,
        mapping: &Mapping,
    ) -> Result<(), OpenError> {
        if !self.is_pending(mapping.image()) {
            let file = mapping.open(proc, process)?;
            self.pending.insert(mapping.image(), Pending::new(false));
            self.opened.push((mapping.clone(), file));
        }
        Ok(())
    }

    /// No selected service maps it any more.
    pub(super) fn unselect(&mut self, image: ImageId) {
        if let Some(pending) = self.pending.get_mut(&image) {
            pending.selected = false;
        }
    }

    /// The image could not be examined, for a reason that may pass.
    pub(super) fn failed(&mut self, image: ImageId) {
        self.failed.insert(image);
    }

    /// Those images, if it is time to try again.
    pub(super) fn take_failed(&mut self, now: Instant) -> BTreeSet<ImageId> {
        if now.duration_since(self.tried_at) < RETRY {
            return BTreeSet::new();
        }
        self.tried_at = now;
        std::mem::take(&mut self.failed)
    }

    /// Whether the image is still being examined.
    pub(super) fn is_pending(&self, image: ImageId) -> bool {
        self.pending.contains_key(&image)
    }

    /// How many are.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Whether one of them is likely to be examined soon.
    pub(super) fn is_urgent(&self, now: Instant) -> bool {
        let mut pending = self.pending.values();
        pending.any(|pending| now.duration_since(pending.since) < PATIENCE)
    }

    /// Opens the next images; returns those that cannot be opened through the process that was
    /// named.
    pub(super) fn open(&mut self, proc: &ProcRoot) -> Vec<Answer> {
        let mut failed = Vec::new();
        while self.pending.len() - self.closed.len() < OPEN
            && let Some((process, mapping)) = self.closed.pop_front()
        {
            match mapping.open(proc, process) {
                Ok(file) => self.opened.push((mapping, file)),
                Err(error) => failed.extend(self.answered((mapping, Err(error.into())))),
            }
        }
        failed
    }

    /// Examines what is open, if there is a thread to spare.
    pub(super) fn start(&mut self) {
        self.threads.retain(|thread| !thread.is_finished());
        if self.opened.is_empty() || self.threads.len() >= THREADS {
            return;
        }
        let images = std::mem::take(&mut self.opened);
        let ids: Vec<ImageId> = images.iter().map(|(mapping, _)| mapping.image()).collect();
        let sender = self.sender.clone();
        let thread = thread::Builder::new().name("tlsprof-images".to_owned());
        let work = move || {
            // The files are open: nothing more is needed for reading foreign bytes.
            if let Err(error) = privilege::give_up_all() {
                tracing::warn!(%error, "a thread that examines images keeps its privileges");
            }
            for (mapping, file) in images {
                let result = examine(&mapping, file);
                if sender.send((mapping, result)).is_err() {
                    // The session is over.
                    return;
                }
            }
        };
        match thread.spawn(work) {
            Ok(thread) => self.threads.push(thread),
            // As if they could not be opened.
            Err(error) => {
                tracing::warn!(%error, "images cannot be examined: cannot start the thread");
                self.pending.retain(|image, _| !ids.contains(image));
                self.failed.extend(ids);
            }
        }
    }

    /// The next image that was examined.
    pub(super) fn answer(&mut self) -> Option<Answer> {
        let examined = self.examined.try_recv().ok()?;
        self.answered(examined)
    }

    fn answered(&mut self, (mapping, result): Examined) -> Option<Answer> {
        let pending = self.pending.remove(&mapping.image())?;
        self.failed.remove(&mapping.image());
        Some(Answer {
            mapping,
            selected: pending.selected,
            result,
        })
    }
}

/// Whether an image may be examined through another process, or later.
pub(super) const fn may_pass(error: &InspectError) -> bool {
    matches!(error, InspectError::Open(_) | InspectError::Duplicate(_))
}

/// Examines an image. Its bytes are foreign: a panic must not take the session along.
fn examine(mapping: &Mapping, file: OpenImage) -> Result<Inspected, InspectError> {
    let began = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| inspect(file, mapping)));
    let took = began.elapsed();
    if took >= LONG {
        tracing::info!(path = %mapping.path.display(), ?took, "examining an image took long");
    }
    result.unwrap_or(Err(InspectError::Panicked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use tlsprof_common::Device;

    fn mapping(inode: u64) -> Mapping {
        Mapping {
            start: 0x1000,
            end: 0x2000,
            file_offset: 0,
            device: Device { major: 8, minor: 1 },
            inode,
            path: "/lib/libssl.so.3".into(),
            deleted: false,
        }
    }

    #[test]
    fn an_image_that_never_answers_is_not_urgent_for_ever() {
        let mut inspection = Inspection::new();
        assert!(!inspection.is_urgent(Instant::now()));
        inspection.request(1, mapping(7));
        let now = Instant::now();
        assert!(inspection.is_urgent(now));
        assert!(!inspection.is_urgent(now + PATIENCE));
        // Reported once more, it is no newer than it was.
        inspection.request(1, mapping(7));
        assert!(!inspection.is_urgent(now + PATIENCE));
        assert_eq!(inspection.pending(), 1);
    }

    #[test]
    fn an_image_that_could_not_be_opened_is_tried_again_after_a_while() {
        let mut inspection = Inspection::new();
        let image = mapping(7).image();
        let open = OpenError::Replaced {
            pid: 1,
            path: "/lib/libssl.so.3".into(),
            source: io::Error::other("too many open files"),
        };
        assert!(may_pass(&open.into()));
        assert!(!may_pass(&InspectError::Panicked));
        inspection.failed(image);
        let now = Instant::now();
        assert!(inspection.take_failed(now).is_empty(), "not in every turn");
        assert_eq!(inspection.take_failed(now + RETRY), [image].into());
        assert!(inspection.take_failed(now + RETRY * 2).is_empty());
    }
}
