//! A profile under way: joins the stages, from discover to the ledger.

mod advice;
mod asking;
mod booking;
mod budget;
pub mod diagnosis;
mod facts;
pub mod governor;
mod images;
mod learned;
mod listening;
mod port;
mod queues;
mod readings;
mod sampling;
mod signatures;
mod silence;
pub mod spots;
mod window;
mod windows;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLockReadGuard};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::attach::danger::Dangers;
use crate::attach::registry::Registry;
use crate::discover::ProcRoot;
use crate::discover::host::Host;
use crate::discover::host_time::HostTime;
use crate::discover::ports::PortReader;
use crate::discover::process::CpuTime;
use crate::discover::selection::Selection;
use crate::discover::table::ProcessTable;
use crate::evidence::Evidence;
use crate::evidence::ProcessEvent;
use crate::evidence::decode::decode;
use crate::evidence::join::Joiner;
use crate::kernel::connections::Follow;
use crate::kernel::cost::{RunMeter, TrapCost, calibrate};
use crate::kernel::load::{Loaded, Options as LoadOptions, UprobeMode, load};
use crate::kernel::mappings::Watch;
use crate::kernel::packets::Timing;
use crate::kernel::record;
use crate::kernel::samples::Sampling;
use crate::ledger::{Ledger, SharedLedger};
use crate::outlet::flamegraph::Stack;
use crate::privilege;
use asking::Asking;
use budget::Budget;
use listening::Listening;
use port::PortListeners;
use queues::Queues;
use readings::Readings;
use sampling::SampleDesk;
use signatures::Signatures;
use silence::Silence;
use spots::Spots;
use window::Window;
use windows::StepProbes;

pub use governor::Duty;

/// How to profile.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file that describes the kernel's types, for kernels that do not show them.
    pub btf: Option<PathBuf>,
    /// What to profile.
    pub selection: Selection,
    /// Whether TLS libraries are probed.
    pub library: bool,
    /// When the public-key steps of handshakes are probed.
    pub steps: Duty,
    /// When key derivation is probed.
    pub key_derivation: Duty,
    /// Share of the targets' CPU time that probes may cost; None for no limit.
    pub budget: Option<f64>,
    /// Forces a way to attach uprobes.
    pub uprobe_mode: Option<UprobeMode>,
    /// Most handshakes under way at the same time.
    pub handshakes_in_progress: u32,
    /// How long nothing may move on a connection in a handshake.
    pub handshake_silence: Duration,
    /// How much of TCP connections is followed.
    pub connections: Follow,
    /// How the CPUs are sampled.
    pub sampling: Sampling,
    /// Whether packets are timed.
    pub packets: Timing,
    /// Whether TLS ports are asked for the kind of key in their certificate,
    /// where handshakes hide it.
    pub ask_certificates: bool,
    /// Whether samples are kept by the code that they hit, for a flame graph.
    pub spots: bool,
}

/// CPU time is read from /proc this often; a process that ends between two
/// readings has the rest of its time from its exit event.
const CPU_PERIOD: Duration = Duration::from_secs(1);

/// A profile under way.
pub struct Session {
    proc: ProcRoot,
    host: Host,
    loaded: Loaded,
    watch: Watch,
    table: ProcessTable<ProcRoot>,
    registry: Registry,
    library: bool,
    dangers: Dangers,
    joiner: Joiner,
    signatures: Signatures,
    queues: Queues,
    listening: Listening,
    port: PortListeners,
    ledger: SharedLedger,
    /// The user named what to profile, so that all of it is worth showing.
    named: bool,
    step_probes: StepProbes,
    samples: SampleDesk,
    budget: Option<Budget>,
    meter: RunMeter,
    trap: TrapCost,
    window: Window,
    /// Of all CPUs, when the window began and when it ended.
    host_time: (Option<HostTime>, Option<HostTime>),
    cpu_read: Duration,
    readings: Readings,
    /// What services had used when the profile began.
    cpu_before: BTreeMap<String, CpuTime>,
    cpu_booked: BTreeMap<String, CpuTime>,
    spots: Option<Spots>,
    silence: Silence,
    undecodable: u64,
    mappings_lost: u64,
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
        let mut loaded = load(&LoadOptions {
            btf: options.btf.clone(),
            mode: options.uprobe_mode,
            handshakes_in_progress: options.handshakes_in_progress,
            connections: options.connections,
            sampling: options.sampling,
            packets: options.packets,
        })?;
        let trap = calibrate(&mut loaded).unwrap_or_default();
        // Watch first, scan then: what happens in between is seen twice, not never.
        let watch = Watch::start()
            .context("the kernel refuses to report mappings (perf_event_open)")
            .map_err(privilege::because)?;
        let mut table = ProcessTable::new(proc.clone());
        table.scan()?;
        let mut reader = PortReader::default();
        let began = monotonic_now();
        let ports = reader.read(&proc, table.lives());
        let listening = Listening::new(reader, ports, monotonic_now().saturating_sub(began));
        table
            .select(&options.selection, listening.known())
            .map_err(|error| privilege::because(error.into()))?;
        let asking = match options.ask_certificates {
            true => Some(Asking::start(proc.clone()).context("cannot start a thread")?),
            false => None,
        };
        let dangers = Dangers::new(&host.kernel);
        let mut session = Self {
            proc,
            host,
            loaded,
            watch,
            table,
            registry: Registry::new(),
            library: options.library,
            dangers,
            joiner: Joiner::default(),
            signatures: Signatures::new(asking),
            queues: Queues::new(),
            listening,
            port: PortListeners::default(),
            ledger,
            named: options.selection != Selection::All,
            step_probes: StepProbes::new(options.steps, options.key_derivation),
            samples: SampleDesk::default(),
            budget: options.budget.map(Budget::new),
            meter: RunMeter::default(),
            trap,
            window: Window::default(),
            host_time: (None, None),
            cpu_read: monotonic_now(),
            readings: Readings::default(),
            cpu_before: BTreeMap::new(),
            cpu_booked: BTreeMap::new(),
            spots: options.spots.then(Spots::default),
            silence: Silence::new(options.handshake_silence),
            undecodable: 0,
            mappings_lost: 0,
        };
        session
            .step_probes
            .begin(&mut session.loaded, &mut session.registry)?;
        session.follow_images();
        session.begin_sampling();
        session.note_port_listeners();
        session.begin();
        Ok(session)
    }

    /// Begins the window at this instant, for all accounts alike. What happened before is
    /// taken first, so that no reading waits for it.
    fn begin(&mut self) {
        self.take_evidence(&mut |_, _| {});
        self.read_accept_queues(true);
        self.loaded.take_packets(|_, _| {});
        self.loaded.take_samples(|_, _| {});
        self.host_time.0 = HostTime::read();
        self.begin_cpu();
        self.window.begin(monotonic_now());
    }

    /// Ends the window at this instant, for all accounts alike. CPU time and samples are
    /// booked later, by [`finish`](Self::finish): whose they are may still have to be learned.
    fn end(&mut self, see: &mut impl FnMut(&str, &Evidence)) {
        self.take_evidence(see);
        self.window.end(monotonic_now());
        self.table.read_cpu(|_| true);
        self.host_time.1 = HostTime::read();
        self.take_evidence(see);
        self.take_mappings();
        self.take_samples();
        self.take_packets();
        self.read_accept_queues(true);
        self.meter.tick(&self.loaded);
    }

    /// Waits up to `timeout` for evidence and books it; `see` gets each handshake
    /// and connection with its service as well.
    ///
    /// # Errors
    ///
    /// When the kernel side breaks down.
    pub fn turn(&mut self, timeout: Duration, mut see: impl FnMut(&str, &Evidence)) -> Result<()> {
        self.loaded.wait(timeout)?;
        self.take_evidence(&mut see);
        self.ask();
        self.take_mappings();
        self.follow_images();
        self.step_probes
            .turn(&mut self.loaded, &mut self.registry)?;
        self.meter.tick(&self.loaded);
        self.read_accept_queues(false);
        self.silence.turn(&mut self.loaded);
        if monotonic_now().saturating_sub(self.cpu_read) >= CPU_PERIOD {
            self.follow_cpus();
            self.take_samples();
            self.take_packets();
            self.book_cpu();
            self.keep_budget();
            self.bound_time_wait();
            self.follow_asked();
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
    pub fn finish(&mut self, mut see: impl FnMut(&str, &Evidence)) -> Result<()> {
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
            self.ask();
            self.take_mappings();
        }
        self.settle_port();
        self.flush(&mut see);
        self.book_cpu_as_read();
        self.settle_cpu();
        self.bound_time_wait();
        Ok(())
    }

    /// The accounts so far.
    pub fn ledger(&self) -> RwLockReadGuard<'_, Ledger> {
        // A panic elsewhere leaves the sums usable: each is written at once.
        self.ledger.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Samples of the services in the ledger by the names of the code that they hit;
    /// none if [`Options::spots`] was not set.
    pub fn stacks(&self) -> BTreeMap<Stack, u64> {
        let mut stacks = self.spots.as_ref().map(Spots::stacks).unwrap_or_default();
        let ledger = self.ledger();
        stacks.retain(|stack, _| ledger.service(&stack.service).is_some());
        stacks
    }

    /// How long the profile has been under way, or was.
    pub fn elapsed(&self) -> Duration {
        self.window.length(monotonic_now())
    }

    /// When CPU time was last booked, since the profile began: about each second.
    pub fn accounted_at(&self) -> Duration {
        self.window.length(self.cpu_read)
    }

    /// Images that are profiled.
    pub fn profiled_images(&self) -> usize {
        self.registry.profiled()
    }

    fn take_evidence(&mut self, see: &mut impl FnMut(&str, &Evidence)) {
        let now = monotonic_now();
        let (undecodable, ended, appeared) = self.with_desk(|loaded, desk| {
            desk.books.advance(now);
            let calls_seen = loaded.connections.calls.is_ok();
            let mut undecodable = 0;
            let mut ended = BTreeMap::new();
            let all_taken = loaded.drain(|bytes| {
                let record = record::decode(bytes);
                let decoded = record
                    .as_ref()
                    .map(|record| (decode(record), record.time()));
                let Some((Some(mut evidence), time)) = decoded else {
                    undecodable += 1;
                    return;
                };
                if let Evidence::Process(ProcessEvent::Exit { process, .. }) = &evidence {
                    ended.insert(*process, time);
                }
                if !calls_seen {
                    booking::forget_turns(&mut evidence);
                }
                desk.take(evidence, Duration::from_nanos(time), see);
            });
            desk.take_abandoned(loaded, &ended, see);
            if all_taken {
                desk.advance(now, see);
            }
            (undecodable, ended, desk.appeared)
        });
        self.undecodable += undecodable;
        self.note_port_ends(&ended);
        self.follow_port(appeared);
    }
}

/// The clock of the kernel side's times.
fn monotonic_now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::try_from(now).unwrap_or_default()
}
