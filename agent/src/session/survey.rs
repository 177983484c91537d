//! How a session starts: the kernel side is loaded, which is mostly the kernel's work, and
//! meanwhile threads of their own look at the host's processes and the kernel's functions.

use std::cell::{Cell, RefCell};
use std::thread::{self, ScopedJoinHandle};

use anyhow::{Context as _, Result};

use super::listening::{Listening, Source};
use super::options::Options;
use super::sampling::{Kernel, SampleDesk};
use super::targets::Targets;
use tlsprof_common::privilege;
use tlsprof_discover::ProcRoot;
use tlsprof_discover::host::Host;
use tlsprof_discover::table::ProcessTable;
use tlsprof_kernel::cost::{TrapCost, calibrate};
use tlsprof_kernel::listeners::Listeners;
use tlsprof_kernel::load::{Options as LoadOptions, load};
use tlsprof_kernel::loaded::Loaded;
use tlsprof_kernel::mappings::Watch;

/// The processes of the host when the session starts, and their ports.
pub(super) struct Survey {
    pub(super) targets: Targets,
    pub(super) listening: Listening,
}

/// All that a session starts with.
pub(super) struct Start {
    pub(super) loaded: Loaded,
    pub(super) trap: TrapCost,
    pub(super) survey: Survey,
    pub(super) samples: SampleDesk,
}

impl Start {
    /// # Errors
    ///
    /// When the kernel side cannot be set up, or nothing is selected.
    pub(super) fn new(options: &Options, proc: &ProcRoot, host: &Host) -> Result<Self> {
        let load_options = LoadOptions {
            btf: options.btf.clone(),
            mode: options.uprobe_mode,
            handshakes_in_progress: options.handshakes_in_progress,
            connections: options.connections,
            sampling: options.sampling,
        };
        let survey = |listeners| Survey::new(proc, host, options, listeners);
        thread::scope(|scope| {
            let (surveying, loads) = (RefCell::new(None), Cell::new(0));
            // Processes are followed first and scanned then: what happens in between is seen
            // twice, not never.
            let followed = |listeners| {
                loads.set(loads.get() + 1);
                let mut surveying = surveying.borrow_mut();
                surveying.get_or_insert_with(|| scope.spawn(move || survey(listeners)));
            };
            let mut loaded = load(&load_options, followed)?;
            // Our own programs are among the functions by now.
            let samples = (options.sampling.frequency > 0).then(|| scope.spawn(sample_desk));
            let trap = calibrate(&mut loaded).unwrap_or_default();
            let mut survey = match surveying.take() {
                Some(surveying) => outcome(surveying)?,
                None => survey(None)?,
            };
            if loads.get() > 1 {
                // What was followed at first was dropped with its programs.
                survey.targets.table.scan()?;
            }
            let mut samples = samples.map(outcome).unwrap_or_default();
            samples.starts.note(survey.targets.table.mark());
            Ok(Self {
                loaded,
                trap,
                survey,
                samples,
            })
        })
    }
}

fn outcome<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn sample_desk() -> SampleDesk {
    let mut desk = SampleDesk::default();
    desk.know_kernel(Kernel::read(), tlsprof_discover::interrupts::read());
    desk
}

impl Survey {
    fn new(
        proc: &ProcRoot,
        host: &Host,
        options: &Options,
        listeners: Option<Listeners>,
    ) -> Result<Self> {
        // Watch first, scan then, as with processes.
        let watch = Watch::start()
            .context("the kernel refuses to report mappings (perf_event_open)")
            .map_err(privilege::because)?;
        let mut table = ProcessTable::new(proc.clone());
        table.scan()?;
        let listening = Listening::new(Source::new(listeners, proc, table.live()));
        table
            .select(&options.selection, listening.known())
            .map_err(|error| privilege::because(error.into()))?;
        for error in table.unmatched(&options.selection) {
            tracing::warn!("{error}. tlsprof will profile it when it starts");
        }
        let targets = Targets::new(proc.clone(), table, watch, host, options);
        Ok(Self { targets, listening })
    }
}
