//! Loads the BPF programs, each by itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use aya::maps::{Array, HashMap, PerCpuArray, RingBuf};
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf};

use super::connections::{self, ConnectionHooks};
use super::error::{LoadError, Unavailable, maps, refused};
use super::heap;
use super::limits;
use super::listeners::{Listeners, told};
use super::loaded::Loaded;
use super::object::{Tables, UprobeMode, best_mode, load_uprobes, open, program, take_map};
use super::samples::Sampling;
use super::socket_calls::Tier;
use super::types::KernelTypes;

/// 1.6 MB: enough for some thousands of short connections in a second.
const UNFOLLOWED_CONNECTIONS: u32 = 8_192;

/// Programs that follow processes, with their tracepoints.
const PROCESSES: &[(&str, &str)] = &[
    ("thread_left", "sched_switch"),
    ("process_fork", "sched_process_fork"),
    ("process_exec", "sched_process_exec"),
    ("thread_exit", "sched_process_exit"),
];

/// What stops the clocks of threads, where there are no hooks on socket calls to come with.
const SWITCHES: &[(&str, &str)] = &[(connections::SWITCH, connections::SWITCH)];

/// How to load.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file that describes the kernel's types, for kernels that do not show them.
    pub btf: Option<PathBuf>,
    /// Forces one way to attach uprobes; None takes the best that works.
    pub mode: Option<UprobeMode>,
    /// Most handshakes under way at the same time on this host.
    pub handshakes_in_progress: u32,
    /// How much of TCP connections is followed.
    pub connections: ConnectionHooks,
    /// How the CPUs are sampled.
    pub sampling: Sampling,
}

/// Loads all programs and attaches those that follow processes, the scheduler
/// and TCP connections; nothing is placed in a target yet.
///
/// # Errors
///
/// [`LoadError`] says what the kernel lacks or refuses. That connections cannot
/// be followed is no error, see [`Loaded::connections`].
///
/// `followed` is called as soon as processes are followed, with who listens where, if the kernel
/// tells: again for each way to see socket calls that the kernel refuses, since all is loaded anew
/// then, and what was seen is lost.
pub fn load(options: &Options, followed: impl Fn(Option<Listeners>)) -> Result<Loaded, LoadError> {
    limits::raise();
    let types = KernelTypes::read(options.btf.as_deref())?;
    let mode = options.mode.unwrap_or_else(best_mode);
    let tables = Tables {
        handshakes: options.handshakes_in_progress,
        samples: options.sampling.room(),
        unfollowed: UNFOLLOWED_CONNECTIONS,
    };
    let (mut bpf, connections) = connections::attach(&types, options.connections, |storage| {
        let mut bpf = open(types.btf(), mode, storage, tables)?;
        load_tracepoints(&mut bpf, PROCESSES, types.btf())?;
        let listeners =
            Listeners::load(&mut bpf, types.btf()).and_then(|()| Listeners::new(&mut bpf));
        followed(told(listeners));
        Ok(bpf)
    })?;
    if connections.calls().is_err() {
        load_tracepoints(&mut bpf, SWITCHES, types.btf())?;
    }
    drop(types);
    heap::give_back();
    let uprobes = load_uprobes(&mut bpf)?;
    let mut take = |name| take_map(&mut bpf, name);
    Ok(Loaded {
        events: RingBuf::try_from(take("events")?).map_err(maps)?,
        control: Array::try_from(take("control")?).map_err(maps)?,
        said: Default::default(),
        handshakes: HashMap::try_from(take("handshakes")?).map_err(maps)?,
        calls: HashMap::try_from(take("calls")?).map_err(maps)?,
        exchanges: HashMap::try_from(take("exchanges")?).map_err(maps)?,
        given_up: HashMap::try_from(take("given_up")?).map_err(maps)?,
        losses: PerCpuArray::try_from(take("losses")?).map_err(maps)?,
        hits: PerCpuArray::try_from(take("hits")?).map_err(maps)?,
        runs: PerCpuArray::try_from(take("runs")?).map_err(maps)?,
        timed: PerCpuArray::try_from(take("timed_threads")?).map_err(maps)?,
        skipped: AtomicU64::new(0),
        bpf,
        mode,
        connections,
        samples: Err(Unavailable::NotStarted),
        sampling: options.sampling,
        library: uprobes.library.map_err(Arc::new),
        has_cookies: uprobes.has_cookies,
    })
}

/// Tries a way to see socket calls that is not in use; nothing stays loaded.
///
/// # Errors
///
/// The kernel's reason.
pub fn try_tier(tier: Tier, btf: Option<&Path>) -> Result<(), Unavailable> {
    limits::raise();
    let types = KernelTypes::read(btf)?;
    let storage = tier.storage();
    let mut bpf = open(types.btf(), UprobeMode::Single, storage, Tables::SMALLEST)?;
    connections::attach_tier(&mut bpf, &types, tier).map(drop)
}

fn load_tracepoints(bpf: &mut Ebpf, programs: &[(&str, &str)], btf: &Btf) -> Result<(), LoadError> {
    for (name, tracepoint) in programs {
        let program: &mut BtfTracePoint = program(bpf, name)?;
        program.load(tracepoint, btf).map_err(refused(name))?;
        program.attach().map_err(refused(name))?;
    }
    Ok(())
}
