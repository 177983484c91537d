//! Examines images in threads beside the session: one of hundreds of megabytes takes seconds, in
//! which evidence would be waiting. Files are opened at once, while their processes live.

use std::collections::{BTreeMap, VecDeque};
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

/// What was found in an image.
pub(super) struct Answer {
    pub(super) mapping: Mapping,
    /// A selected service maps it: a TLS library in it is of interest.
    pub(super) selected: bool,
    pub(super) result: Result<Inspected, InspectError>,
}

type Examined = (Mapping, Result<Inspected, InspectError>);

/// Images that are being examined.
pub(super) struct Inspection {
    /// Whether a selected service maps them.
    pending: BTreeMap<ImageId, bool>,
    /// Those that are not open yet, with a process that maps them.
    closed: VecDeque<(Pid, Mapping)>,
    /// Those that no thread has yet.
    opened: Vec<(Mapping, OpenImage)>,
    threads: Vec<JoinHandle<()>>,
    sender: Sender<Examined>,
    examined: Receiver<Examined>,
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
        }
    }

    /// Has an image of a selected service examined.
    pub(super) fn request(&mut self, process: Pid, mapping: Mapping) {
        if self.pending.insert(mapping.image(), true).is_none() {
            self.closed.push_back((process, mapping));
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
            self.pending.insert(mapping.image(), false);
            self.opened.push((mapping.clone(), file));
        }
        Ok(())
    }

    /// No selected service maps it any more.
    pub(super) fn unselect(&mut self, image: ImageId) {
        if let Some(selected) = self.pending.get_mut(&image) {
            *selected = false;
        }
    }

    /// Whether the image is still being examined.
    pub(super) fn is_pending(&self, image: ImageId) -> bool {
        self.pending.contains_key(&image)
    }

    /// How many are.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
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
            // They stay unknown, as if they could not be opened.
            Err(error) => {
                tracing::warn!(%error, "images cannot be examined: cannot start the thread");
                self.pending.retain(|image, _| !ids.contains(image));
            }
        }
    }

    /// The next image that was examined.
    pub(super) fn answer(&mut self) -> Option<Answer> {
        let examined = self.examined.try_recv().ok()?;
        self.answered(examined)
    }

    fn answered(&mut self, (mapping, result): Examined) -> Option<Answer> {
        let selected = self.pending.remove(&mapping.image())?;
        Some(Answer {
            mapping,
            selected,
            result,
        })
    }
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
