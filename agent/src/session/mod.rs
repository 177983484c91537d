//! A profile under way: joins the stages, from discover to the ledger.

mod advice;
mod booking;
mod budget;
mod calls;
mod calls_rate;
mod cohorts;
mod coverage;
mod cpu;
pub(crate) mod diagnosis;
mod facts;
pub(crate) mod governor;
mod inspection;
mod learned;
mod listening;
mod options;
mod overhead;
mod port;
mod primitives;
mod queues;
mod rates;
mod readings;
mod sampling;
mod shared;
mod signatures;
mod silence;
pub mod spots;
mod survey;
mod targets;
mod whose;
mod window;
mod windows;

use std::collections::BTreeMap;
use std::sync::RwLockReadGuard;
use std::time::Duration;

use anyhow::Result;

use booking::Bookkeeper;
use calls::{CallWindows, Stage};
use cpu::{CpuBook, bound_time_wait};
use overhead::Overhead;
use port::Ports;
use queues::Queues;
use sampling::Samples;
use shared::{monotonic_now, read, write};
use silence::Silence;
use survey::Start;
use targets::Targets;
use tlsprof_advise::{Finding, Setting, Thresholds};
use tlsprof_common::Loss;
use tlsprof_discover::ProcRoot;
use tlsprof_discover::host::{Host, other_pid_namespace};
use tlsprof_evidence::Evidence;
use tlsprof_kernel::loaded::Loaded;
use tlsprof_ledger::{Ledger, SharedLedger};
use tlsprof_outlet::flamegraph::Stack;
use tlsprof_report::ServiceFacts;

pub(crate) use facts::model_of;
pub(crate) use governor::{Duty, Keep};
pub use options::Options;
pub(crate) use rates::Rates;

/// A profile under way: parts that each own their state, and what they work on.
pub(crate) struct Session {
    host: Host,
    loaded: Loaded,
    ledger: SharedLedger,
    targets: Targets,
    ports: Ports,
    books: Bookkeeper,
    calls: CallWindows,
    cpu: CpuBook,
    samples: Samples,
    queues: Queues,
    silence: Silence,
    overhead: Overhead,
    /// What was lost in the profile, once it is over.
    lost: Option<Vec<(Loss, u64)>>,
}

impl Session {
    /// Loads the programs, finds the services and attaches to them. When it
    /// returns, handshakes that begin are seen; they are booked in `ledger`.
    ///
    /// # Errors
    ///
    /// When the kernel side cannot be set up, or nothing is selected.
    pub fn start(options: &Options, ledger: SharedLedger) -> Result<Self> {
        let proc = ProcRoot::default();
        let host = Host::read()?;
        if let Some(problem) = other_pid_namespace() {
            tracing::warn!("{problem}");
        }
        let start = Start::new(options, &proc, &host)?;
        let calls = start.loaded.connections.calls().is_ok();
        let mut session = Self {
            host,
            loaded: start.loaded,
            ledger,
            targets: start.survey.targets,
            ports: Ports::new(start.survey.listening),
            books: Bookkeeper::new(options.budget.is_some() && options.keep == Keep::Connections),
            calls: CallWindows::new(monotonic_now()),
            cpu: CpuBook::new(),
            samples: Samples::new(start.samples, options),
            queues: Queues::new(),
            silence: Silence::new(options.handshake_silence),
            overhead: Overhead::new(options, start.trap, calls),
            lost: None,
        };
        let registry = &mut session.targets.registry;
        session.overhead.begin(&mut session.loaded, registry)?;
        session.attach()?;
        session.samples.begin(&mut session.loaded, &session.ledger);
        session.ports.note_listeners(&session.targets);
        session.begin();
        Ok(session)
    }

    /// Attaches to what is there. Evidence is from before the window, and is not booked.
    fn attach(&mut self) -> Result<()> {
        let (ledger, books, ports) = (&self.ledger, &mut self.books, &mut self.ports);
        let mut see = |_: &str, _: &Evidence| {};
        self.targets
            .attach_all(&mut self.loaded, |targets, loaded| {
                take_evidence(loaded, targets, ledger, books, ports, &mut see);
            })?;
        Ok(())
    }

    /// Begins the window at this instant, for all accounts alike. What happened before is
    /// taken first, so that no reading waits for it.
    fn begin(&mut self) {
        self.take_evidence(&mut |_, _| {});
        self.read_queues(true);
        self.loaded.take_samples(|_, _| {});
        self.overhead
            .begin_window(&self.loaded, &read(&self.ledger));
        self.cpu.begin(&mut self.targets);
        self.books.window().begin(monotonic_now());
    }

    /// Ends the window at this instant, for all accounts alike. CPU time and samples are
    /// booked later, by [`finish`](Self::finish): whose they are may still have to be learned.
    fn end(&mut self, see: &mut impl FnMut(&str, &Evidence)) {
        self.take_evidence(see);
        self.books.window().end(monotonic_now());
        self.cpu.end(&mut self.targets);
        self.overhead.end_window(&self.loaded);
        // Which processes have probed libraries says how their samples are read.
        self.take_evidence(see);
        self.targets.take_mappings();
        self.take_samples(see);
        self.ports.settle(&mut self.loaded, &mut self.targets);
        self.read_queues(true);
    }

    /// Waits up to `timeout` for evidence and books it; `see` gets each handshake
    /// and connection with its service as well.
    ///
    /// # Errors
    ///
    /// When the kernel side breaks down.
    pub(crate) fn turn(
        &mut self,
        timeout: Duration,
        mut see: impl FnMut(&str, &Evidence),
    ) -> Result<()> {
        let timeout = self
            .calls
            .patience(self.cpu.patience(timeout), monotonic_now());
        self.loaded.wait(self.targets.patience(timeout))?;
        let drained = self.take_evidence(&mut see);
        self.targets.take_mappings();
        self.targets.follow_images(&mut self.loaded);
        self.follow_calls(&mut see)?;
        self.overhead
            .turn(&mut self.loaded, &mut self.targets.registry)?;
        self.read_queues(false);
        self.silence.turn(&mut self.loaded);
        if self.cpu.is_due() {
            self.targets.find_missed(&self.loaded, drained);
            self.ports.turn(&mut self.loaded, &self.targets);
            self.take_samples(&mut see);
            let elapsed = self.elapsed();
            self.samples.follow_rate(&mut self.loaded, elapsed);
            let sampled =
                self.loaded.samples.is_ok() && self.calls.sampled_since(self.cpu.read_at());
            self.cpu
                .book(sampled, &mut self.targets, &mut self.samples, &self.ledger);
            self.keep_budget();
            bound_time_wait(&self.targets, &self.ledger);
        }
        Ok(())
    }

    /// Ends the profile: its window now, and then waits for the end of what began in it,
    /// until no such handshake has ended for a while. Bounded. Connections do not make it
    /// wait longer: on most hosts some end all the time.
    ///
    /// # Errors
    ///
    /// As for [`turn`](Self::turn).
    pub(crate) fn finish(&mut self, mut see: impl FnMut(&str, &Evidence)) -> Result<()> {
        const QUIET: Duration = Duration::from_millis(300);
        const AT_MOST: Duration = Duration::from_secs(3);
        self.end(&mut see);
        let began = monotonic_now();
        let (mut now, mut last) = (began, began);
        while now < last + QUIET && now < began + AT_MOST {
            self.loaded.wait(Duration::from_millis(20))?;
            now = monotonic_now();
            self.take_evidence(&mut |service: &str, evidence: &Evidence| {
                if matches!(evidence, Evidence::Handshake(_)) {
                    last = now;
                }
                see(service, evidence);
            });
            self.targets.take_mappings();
        }
        self.books.flush(&mut self.targets, &self.ledger, &mut see);
        self.cpu
            .book_as_read(&mut self.targets, &mut self.samples, &self.ledger);
        self.release();
        self.samples.finish(&self.ledger);
        write(&self.ledger).settle_cpu();
        bound_time_wait(&self.targets, &self.ledger);
        Ok(())
    }

    /// Takes the probes and the hooks on socket calls out: nobody reads what they report any
    /// more, nor what is sampled, nor is that a loss, and what is calibrated now runs without them.
    fn release(&mut self) {
        self.lost = Some(self.loss_counts());
        self.targets.registry.release();
        let _cut = self.loaded.release_calls();
    }

    /// Changes [`Options::budget`], where there is one.
    pub(crate) const fn set_budget(&mut self, share: f64) {
        self.overhead.set_budget(share);
    }

    /// The accounts so far.
    pub fn ledger(&self) -> RwLockReadGuard<'_, Ledger> {
        read(&self.ledger)
    }

    /// Samples of the services in the ledger by the names of the code that they hit;
    /// none if [`Options::spots`] was not set.
    pub(crate) fn stacks(&self) -> BTreeMap<Stack, u64> {
        let mut stacks = self.samples.stacks();
        let ledger = self.ledger();
        stacks.retain(|stack, _| ledger.service(&stack.service).is_some());
        stacks
    }

    /// How long the profile has been under way, or was.
    pub fn elapsed(&self) -> Duration {
        self.books.elapsed(monotonic_now())
    }

    /// Has CPU time booked in the next turn.
    pub const fn hasten(&mut self) {
        self.cpu.hasten();
    }

    /// When CPU time was last booked, since the profile began: about each second.
    pub(crate) fn accounted_at(&self) -> Duration {
        self.books.elapsed(self.cpu.read_at())
    }

    /// Images that are profiled.
    pub fn profiled_images(&self) -> usize {
        self.targets.registry.profiled()
    }

    /// What is wrong, and what a change would save. May take some seconds, where it
    /// calibrates.
    pub fn findings(
        &self,
        services: &BTreeMap<String, ServiceFacts>,
        setting: Setting,
        thresholds: Thresholds,
    ) -> Vec<Finding> {
        advice::findings(&self.ledger, &self.targets, services, setting, thresholds)
    }

    /// Takes all that the kernel side has at this time; where more comes faster than it can be
    /// taken, the rest is left.
    fn take_all_evidence(&mut self, see: &mut impl FnMut(&str, &Evidence)) {
        const AT_MOST: usize = 16;
        for _ in 0..AT_MOST {
            if self.take_evidence(see) {
                return;
            }
        }
        tracing::debug!("evidence of the stage before is left");
    }

    /// Takes what the kernel side has, or much of it; true if it was all.
    fn take_evidence(&mut self, see: &mut impl FnMut(&str, &Evidence)) -> bool {
        let (loaded, targets) = (&mut self.loaded, &mut self.targets);
        let (ledger, books, ports) = (&self.ledger, &mut self.books, &mut self.ports);
        let cpu = &mut self.cpu;
        let mut note = |service: &str, evidence: &Evidence| {
            if let Evidence::Handshake(handshake) = evidence {
                cpu.note(handshake.process);
            }
            see(service, evidence);
        };
        take_evidence(loaded, targets, ledger, books, ports, &mut note)
    }

    /// Puts the hooks on socket calls in or takes them out, where they are seen in windows
    /// and it is time for it.
    fn follow_calls(&mut self, see: &mut impl FnMut(&str, &Evidence)) -> Result<()> {
        let now = monotonic_now();
        let busy = || self.loaded.follows_handshakes(now);
        let Some(stage) = self.calls.turn(now, busy) else {
            return Ok(());
        };
        tracing::debug!(?stage, "socket calls");
        // Before connections are no longer followed, which samples would miss.
        self.loaded.pause_samples();
        // What belongs to the stage before.
        self.take_samples(see);
        self.overhead.go_over(stage, &self.loaded);
        let loaded = &mut self.loaded;
        let mut cut = Vec::new();
        match stage {
            Stage::Lead => loaded.follow_calls()?,
            Stage::Ending => loaded.follow_no_more()?,
            Stage::Out => cut = loaded.release_calls(),
            Stage::Open | Stage::Always => {}
        }
        // Hooks take a while to be attached, and to be taken out.
        let is_lead = stage == Stage::Lead;
        let at = if is_lead { monotonic_now() } else { now };
        self.take_all_evidence(see);
        self.books.go_over(
            (stage.into(), at),
            &cut,
            &mut self.targets,
            &self.ledger,
            see,
        );
        if stage.samples() {
            let times = self.calls.time_for_a_sample();
            self.samples.resume(&mut self.loaded, &self.ledger, times);
        }
        Ok(())
    }

    fn keep_budget(&mut self) {
        let registry = &mut self.targets.registry;
        let ledger = read(&self.ledger);
        let overhead = &mut self.overhead;
        if let Some(duty) = overhead.keep_budget(&mut self.loaded, registry, &ledger) {
            self.calls.set_duty(duty);
        }
    }

    /// Reads the accept queues, if it is time or the last chance.
    fn read_queues(&mut self, last: bool) {
        let ports = self.ports.known();
        if self.queues.turn(&self.targets, ports, &self.ledger, last) {
            self.ports.hurry();
        }
    }

    /// Takes the samples, and then what happened up to them: that says what they show.
    fn take_samples(&mut self, see: &mut impl FnMut(&str, &Evidence)) {
        let taken = self.samples.take(&mut self.loaded, &self.targets);
        self.take_evidence(see);
        self.targets.take_mappings();
        let calls_seen = self.loaded.connections.calls().is_ok();
        let hit = |process| self.cpu.note(process);
        let (targets, ledger) = (&self.targets, &self.ledger);
        self.samples.count(&taken, calls_seen, targets, ledger, hit);
    }
}

fn take_evidence(
    loaded: &mut Loaded,
    targets: &mut Targets,
    ledger: &SharedLedger,
    books: &mut Bookkeeper,
    ports: &mut Ports,
    see: &mut impl FnMut(&str, &Evidence),
) -> bool {
    let news = books.take(loaded, targets, ledger, see);
    ports.note_ends(&news.ended, books.elapsed(monotonic_now()));
    ports.follow_selected(loaded, targets, news.appeared);
    news.all_taken
}
