//! Which processes and images are profiled, as they come and go.

mod lost_events;
mod missed;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::inspection::{Answer, Inspection, may_pass};
use super::options::Options;
use lost_events::LostEvents;
use tlsprof_attach::danger::{Dangers, Inspect};
use tlsprof_attach::error::InspectError;
use tlsprof_attach::registry::{Image, Reason, Registry};
use tlsprof_common::causes::one_line;
use tlsprof_common::{ImageId, Pid};
use tlsprof_discover::ProcRoot;
use tlsprof_discover::host::Host;
use tlsprof_discover::image::{Mapping, OpenError};
use tlsprof_discover::selection::Selection;
use tlsprof_discover::table::{ImageChange, ProcessTable, ServiceView};
use tlsprof_kernel::loaded::Loaded;
use tlsprof_kernel::mappings::Watch;
use tlsprof_ledger::Ledger;
use tlsprof_outlet::terminal::units::counted;

/// Time between two looks whether an image was examined.
const POLL: Duration = Duration::from_millis(2);
/// How long the survey waits for images to be examined: most take a millisecond.
const SURVEY: Duration = Duration::from_millis(100);
/// How long the start waits for the rest. A gigabyte takes some seconds.
const START: Duration = Duration::from_secs(60);

/// The processes of the host and the images that they map: what is selected, and what has probes.
pub(super) struct Targets {
    pub(super) proc: ProcRoot,
    pub(super) table: ProcessTable<ProcRoot>,
    pub(super) registry: Registry,
    watch: Watch,
    dangers: Dangers,
    inspection: Inspection,
    /// Processes to be judged again: images that they map are being examined.
    suspects: BTreeSet<Pid>,
    /// More is known than when processes were judged last.
    news: bool,
    /// Whether TLS libraries are probed.
    library: bool,
    /// The user named what to profile, so that all of it is worth showing.
    named: bool,
    mappings_lost: u64,
    lost_events: LostEvents,
    /// Processes that were found to have ended, with the time of that.
    ended: BTreeMap<Pid, u64>,
}

impl Targets {
    /// The processes of the table, with a watch on mappings that began before it was filled.
    /// Most images were examined when it returns, but it does not wait for large ones.
    pub(super) fn new(
        proc: ProcRoot,
        table: ProcessTable<ProcRoot>,
        watch: Watch,
        host: &Host,
        options: &Options,
    ) -> Self {
        let mut targets = Self {
            proc,
            table,
            registry: Registry::new(),
            watch,
            dangers: Dangers::new(&host.kernel),
            inspection: Inspection::new(),
            suspects: BTreeSet::new(),
            news: true,
            library: options.library,
            named: options.selection != Selection::All,
            mappings_lost: 0,
            lost_events: LostEvents::default(),
            ended: BTreeMap::new(),
        };
        targets.take_changes();
        targets.examine();
        let began = Instant::now();
        while targets.is_examining() && began.elapsed() < SURVEY {
            thread::sleep(POLL);
            targets.examine();
        }
        targets
    }

    /// Attaches to all images of now with a TLS library, once it is known of all processes
    /// that map them whether return probes would harm them. That may take seconds, in which
    /// `take_evidence` keeps the ring from filling up. What takes longer, as a file on a network
    /// file system that does not answer, is attached to later.
    ///
    /// # Errors
    ///
    /// When the kernel side breaks down.
    pub(super) fn attach_all(
        &mut self,
        loaded: &mut Loaded,
        mut take_evidence: impl FnMut(&mut Self, &mut Loaded),
    ) -> io::Result<()> {
        self.take_changes();
        self.attach_examined(loaded);
        let began = Instant::now();
        while self.is_examining() && began.elapsed() < START {
            loaded.wait(POLL)?;
            take_evidence(self, loaded);
            self.attach_examined(loaded);
        }
        Ok(())
    }

    /// How long a turn may wait for evidence: not long while images are being examined, but for
    /// one that takes long, as on a file system that does not answer.
    pub(super) fn patience(&self, timeout: Duration) -> Duration {
        if self.inspection.is_urgent(Instant::now()) {
            timeout.min(POLL)
        } else {
            timeout
        }
    }

    /// Whether there are images of which it is not known yet what is in them.
    pub(super) fn is_examining(&self) -> bool {
        self.inspection.pending() > 0
    }

    /// What it means that images are still being examined.
    pub(super) fn note(&self) -> Option<String> {
        self.is_examining().then(|| {
            format!(
                "{} still being examined at the end: TLS libraries in them are not listed, and had no probes.",
                counted(self.inspection.pending() as u64, "executable file was", "executable files were")
            )
        })
    }

    /// Has images that came into use examined, attaches to those that were, and lets go of
    /// those out of use, or used by a process that return probes would harm. Never waits.
    pub(super) fn follow_images(&mut self, loaded: &mut Loaded) {
        self.take_changes();
        self.attach_examined(loaded);
    }

    fn attach_examined(&mut self, loaded: &mut Loaded) {
        self.examine();
        if !self.library {
            self.registry.leave_out(|| Reason::SwitchedOff);
        } else if let Err(reason) = &loaded.library {
            self.registry
                .leave_out(|| Reason::Kernel(Arc::clone(reason)));
        }
        self.avoid_harm(loaded);
        self.inspection.start();
        let on_hold = self.on_hold();
        self.registry.attach_found(loaded, &on_hold);
    }

    /// Takes note of images that came into use, and forgets those out of use.
    fn take_changes(&mut self) {
        for image in self.table.take_gone() {
            self.dangers.forget(image);
        }
        for image in self.inspection.take_failed(Instant::now()) {
            self.table.report_again(image);
        }
        for change in self.table.take_changes() {
            match change {
                ImageChange::Lost(image) => {
                    self.registry.lost(image);
                    self.inspection.unselect(image);
                }
                ImageChange::Gained {
                    process, mapping, ..
                } => self.inspection.request(process, mapping),
            }
        }
    }

    /// Has images examined, and takes note of what was found in others.
    fn examine(&mut self) {
        for answer in self.inspection.open(&self.proc) {
            self.take_answer(answer);
        }
        self.inspection.start();
        while let Some(answer) = self.inspection.answer() {
            self.take_answer(answer);
        }
    }

    fn take_answer(&mut self, answer: Answer) {
        self.news = true;
        let image = answer.mapping.image();
        // Its inode may be another file's as soon as nobody has it open.
        let is_used = self.table.is_mapped(image);
        match answer.result {
            Ok(inspected) if is_used => {
                self.dangers.note(image, inspected.switches_stacks);
                if answer.selected {
                    self.registry.keep(image, inspected);
                }
            }
            Ok(_) => {}
            Err(InspectError::Open(OpenError::Gone { pid, .. }))
                if self.table.has_let_go(pid, image) =>
            {
                self.table.report_again(image);
            }
            Err(error) => {
                // What is no sound image will not become one; the rest may be opened
                // through another process, or later.
                if may_pass(&error) {
                    self.inspection.failed(image);
                }
                if matches!(error, InspectError::Elf(_)) && is_used {
                    self.dangers.note(image, false);
                }
                let error = one_line(&error);
                tracing::debug!(path = %answer.mapping.path.display(), error, "image left out");
            }
        }
    }

    /// Judges the processes for which something is new: those that map an image found just
    /// now, those that map others than before, and those whose images were being examined.
    fn avoid_harm(&mut self, loaded: &mut Loaded) {
        let remapped = self.table.take_remapped();
        if !std::mem::take(&mut self.news) && remapped.is_empty() {
            return;
        }
        let mut suspects = std::mem::take(&mut self.suspects);
        suspects.extend(remapped);
        suspects.extend(self.table.users_of(&self.registry.found()));
        let host = Examiner {
            proc: &self.proc,
            inspection: RefCell::new(&mut self.inspection),
        };
        let probed = self.registry.probed();
        let suspected = suspects.iter().copied();
        let dangers = self.dangers.among(suspected, &self.table, &probed, &host);
        let refused = dangers
            .into_iter()
            .filter_map(|(image, danger)| self.registry.refuse(image, danger).then_some(image));
        let refused: BTreeSet<ImageId> = refused.collect();
        if !refused.is_empty() {
            let users: BTreeSet<Pid> = self.table.users_of(&refused).collect();
            loaded.forget_calls(|process| users.contains(&process));
        }
        let is_pending = |image| self.inspection.is_pending(image);
        suspects.retain(|process| self.table.maps(*process, is_pending));
        self.suspects = suspects;
    }

    /// Images that get no probes yet: it is not known of all processes that map them whether
    /// return probes would harm them. A process gets all of its probes together: libssl
    /// without libcrypto would have handshakes with a part of their steps.
    fn on_hold(&self) -> BTreeSet<ImageId> {
        let mut on_hold = BTreeSet::new();
        if !self.is_examining() {
            return on_hold;
        }
        let mut found = self.registry.found();
        loop {
            let unknown = |image| self.inspection.is_pending(image) || on_hold.contains(&image);
            let (held, free): (BTreeSet<_>, BTreeSet<_>) = found.into_iter().partition(|image| {
                let one = BTreeSet::from([*image]);
                let mut users = self.table.users_of(&one);
                users.any(|process| self.table.maps(process, unknown))
            });
            if held.is_empty() {
                return on_hold;
            }
            on_hold.extend(held);
            found = free;
        }
    }

    /// The user named what to profile.
    pub(super) const fn are_named(&self) -> bool {
        self.named
    }

    /// The TLS libraries of a service.
    pub(super) fn libraries_of<'a>(
        &'a self,
        service: &'a ServiceView<'a>,
    ) -> impl Iterator<Item = &'a Image> {
        let images = service.images.iter();
        images.filter_map(|(_, mapping)| self.registry.get(mapping.image()))
    }

    /// Whether TLS libraries are probed at all: the user wants it, and the kernel allows it.
    pub(super) const fn may_probe(&self, loaded: &Loaded) -> bool {
        self.library && loaded.library.is_ok()
    }

    /// Selected services with a TLS library.
    pub(super) fn with_library(&self) -> usize {
        let services = self.table.services();
        let with = services
            .iter()
            .filter(|service| self.libraries_of(service).next().is_some());
        with.count()
    }

    /// Services with a TLS library, and those that have an account already, by
    /// handshakes or connections: on a whole host the rest would only fill the
    /// ledger. Of what the user named, all.
    pub(super) fn worth_booking(&self, ledger: &Ledger) -> BTreeSet<String> {
        let services = self.table.services();
        let worth = services.iter().filter(|service| {
            self.named
                || ledger.service(service.name.as_str()).is_some()
                || self.libraries_of(service).next().is_some()
        });
        worth
            .map(|service| service.name.as_str().to_owned())
            .collect()
    }
}

/// Has images of which nothing is known examined.
struct Examiner<'a> {
    proc: &'a ProcRoot,
    inspection: RefCell<&'a mut Inspection>,
}

impl Inspect for Examiner<'_> {
    fn switches_stacks(&self, process: Pid, mapping: &Mapping) -> Option<bool> {
        let mut inspection = self.inspection.borrow_mut();
        if let Err(error) = inspection.request_now(self.proc, process, mapping) {
            let error = one_line(&error);
            tracing::debug!(process, path = %mapping.path.display(), error, "image left out");
        }
        None
    }

    fn is_under_seccomp(&self, process: Pid) -> bool {
        self.proc.is_under_seccomp(process)
    }

    fn name(&self, process: Pid) -> String {
        self.proc.name(process)
    }
}
