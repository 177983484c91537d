//! Loads the BPF programs, each by itself, and reads their maps.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use aya::maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray, RingBuf};
use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, Ebpf};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use thiserror::Error;

use super::connections::{self, ConnectionHooks, Connections};
use super::hits::Hits;
use super::object::{Tables, best_mode, load_uprobes, open};
use super::samples::{Samples, Sampling};
use super::socket_calls::Tier;
use super::sweep::Exchange;
use super::types::{KernelTypes, TypesError};
use super::{limits, lockdown};
use tlsprof_common::causes::one_line;
use tlsprof_common::contract::{
    TLSPROF_EVENT_HANDSHAKE, TLSPROF_LOSS_COUNT, TLSPROF_OUTCOME_ABANDONED,
    tlsprof_connection_object, tlsprof_control, tlsprof_handshake, tlsprof_handshake_event,
};
use tlsprof_common::privilege;

pub use super::object::UprobeMode;

/// Why the kernel side cannot be set up.
#[derive(Debug, Error)]
pub enum LoadError {
    /// No rights to load BPF programs.
    #[error("no permission to load BPF programs: {}", privilege::refusal())]
    Permission,
    /// The kernel's types are not known.
    #[error(transparent)]
    Types(#[from] TypesError),
    /// The kernel is locked down, so that no program may read its memory.
    #[error(
        "this kernel is locked down for confidentiality (kernel_lockdown(7)), so that BPF programs \
         may not read its memory: tlsprof cannot work. Boot it with lockdown=integrity or without \
         lockdown"
    )]
    Lockdown,
    /// The object was refused as a whole.
    #[error("the kernel refused tlsprof's BPF maps")]
    Maps(#[source] anyhow::Error),
    /// One program was refused.
    #[error("the kernel refused the BPF program {program}")]
    Program {
        /// Name of its C function.
        program: String,
        /// What aya said.
        source: anyhow::Error,
    },
}

/// What is loaded, before anything is attached to a target.
pub struct Loaded {
    pub(super) bpf: Ebpf,
    /// How uprobes will be attached.
    pub mode: UprobeMode,
    /// What of TCP connections is followed.
    pub connections: Connections,
    /// Samples of the CPUs; the reason if there are none.
    pub samples: Result<Samples, String>,
    /// How they are taken.
    pub sampling: Sampling,
    /// Whether probes in TLS libraries can be placed; the kernel's reason if not.
    pub library: Result<(), String>,
    /// Attached probes have cookies (Linux 5.15); else programs stand for them.
    pub(super) has_cookies: bool,
    pub(super) events: RingBuf<MapData>,
    control: Array<MapData, Control>,
    handshakes: HashMap<MapData, ConnectionObject, Progress>,
    pub(super) exchanges: HashMap<MapData, u64, Exchange>,
    pub(super) given_up: HashMap<MapData, u64, u8>,
    /// The most runs of programs that were told as left out.
    pub(super) skipped: AtomicU64,
    losses: PerCpuArray<MapData, u64>,
    hits: PerCpuArray<MapData, u64>,
}

/// [`tlsprof_control`] as a map value.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
struct Control(tlsprof_control);

#[allow(unsafe_code, reason = "aya asks for this promise about map values")]
// SAFETY: a C structure of two integers, without padding.
unsafe impl aya::Pod for Control {}

/// [`tlsprof_connection_object`] as a map key.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
struct ConnectionObject(tlsprof_connection_object);

#[allow(unsafe_code, reason = "aya asks for this promise about map keys")]
// SAFETY: a C structure of two integers, without padding.
unsafe impl aya::Pod for ConnectionObject {}

/// [`tlsprof_handshake`] as a map value.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
struct Progress(tlsprof_handshake);

#[allow(unsafe_code, reason = "aya asks for this promise about map values")]
// SAFETY: a C structure of integers and arrays of them; padding carries nothing.
unsafe impl aya::Pod for Progress {}

/// Tracepoint programs with their tracepoints.
const TRACEPOINTS: &[(&str, &str)] = &[
    ("sched_switch", "sched_switch"),
    ("process_fork", "sched_process_fork"),
    ("process_exec", "sched_process_exec"),
    ("thread_exit", "sched_process_exit"),
];

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
/// `followed` is called as soon as processes are followed: again for each way to see socket
/// calls that the kernel refuses, since all is loaded anew then, and what was seen is lost.
pub fn load(options: &Options, followed: impl Fn()) -> Result<Loaded, LoadError> {
    limits::raise();
    let types = KernelTypes::read(options.btf.as_deref())?;
    let mode = options.mode.unwrap_or_else(best_mode);
    let tables = Tables {
        handshakes: options.handshakes_in_progress,
        samples: options.sampling.room(),
    };
    let (mut bpf, connections) = connections::attach(&types, options.connections, |storage| {
        let mut bpf = open(types.btf(), mode, storage, tables)?;
        // Before anything that times a thread: the scheduler stops its clock.
        load_tracepoints(&mut bpf, types.btf())?;
        followed();
        Ok(bpf)
    })?;
    let (library, has_cookies) = load_uprobes(&mut bpf)?;
    let mut take = |name| take_map(&mut bpf, name);
    Ok(Loaded {
        events: RingBuf::try_from(take("events")?).map_err(maps)?,
        control: Array::try_from(take("control")?).map_err(maps)?,
        handshakes: HashMap::try_from(take("handshakes")?).map_err(maps)?,
        exchanges: HashMap::try_from(take("exchanges")?).map_err(maps)?,
        given_up: HashMap::try_from(take("given_up")?).map_err(maps)?,
        losses: PerCpuArray::try_from(take("losses")?).map_err(maps)?,
        hits: PerCpuArray::try_from(take("hits")?).map_err(maps)?,
        skipped: AtomicU64::new(0),
        bpf,
        mode,
        connections,
        samples: Err("not started".to_owned()),
        sampling: options.sampling,
        library,
        has_cookies,
    })
}

/// Tries a way to see socket calls that is not in use; nothing stays loaded.
///
/// # Errors
///
/// The kernel's reason.
pub fn try_tier(tier: Tier, btf: Option<&Path>) -> Result<(), String> {
    limits::raise();
    let tried = KernelTypes::read(btf)
        .map_err(LoadError::from)
        .and_then(|types| {
            connections::try_tier(&types, tier, |storage| {
                open(types.btf(), UprobeMode::Single, storage, Tables::SMALLEST)
            })
        });
    tried.unwrap_or_else(|error| Err(one_line(&error)))
}

pub(super) fn denied(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| {
        error
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    })
}

fn maps(error: MapError) -> LoadError {
    LoadError::Maps(error.into())
}

pub(super) fn take_map(bpf: &mut Ebpf, name: &'static str) -> Result<Map, LoadError> {
    bpf.take_map(name)
        .ok_or_else(|| LoadError::Maps(anyhow::anyhow!("no map {name} in the object")))
}

pub(super) fn refused(program: &str) -> impl Fn(ProgramError) -> LoadError + use<> {
    let program = program.to_owned();
    move |error| {
        if lockdown::hides_memory() {
            LoadError::Lockdown
        } else if denied(&error) {
            LoadError::Permission
        } else {
            LoadError::Program {
                program: program.clone(),
                source: error.into(),
            }
        }
    }
}

fn load_tracepoints(bpf: &mut Ebpf, btf: &Btf) -> Result<(), LoadError> {
    for (name, tracepoint) in TRACEPOINTS {
        let program: &mut BtfTracePoint = program(bpf, name)?;
        program.load(tracepoint, btf).map_err(refused(name))?;
        program.attach().map_err(refused(name))?;
    }
    Ok(())
}

/// A program of the object by name and type.
pub(super) fn program<'a, T>(bpf: &'a mut Ebpf, name: &str) -> Result<&'a mut T, LoadError>
where
    &'a mut T: TryFrom<&'a mut aya::programs::Program, Error = ProgramError>,
{
    let missing = || LoadError::Maps(anyhow::anyhow!("no program {name} in the object"));
    bpf.program_mut(name)
        .ok_or_else(missing)?
        .try_into()
        .map_err(refused(name))
}

impl Loaded {
    /// Hands the waiting records of the event ring to `take`, oldest first; many
    /// at most, so that a flood does not keep the agent from its other work. True
    /// if none was left.
    pub fn drain(&mut self, mut take: impl FnMut(&[u8])) -> bool {
        for _ in 0..MAX_RECORDS {
            let Some(record) = self.events.next() else {
                return true;
            };
            take(&record);
        }
        false
    }

    /// Waits until much evidence is there, at most `timeout`.
    ///
    /// # Errors
    ///
    /// When the ring cannot be waited for.
    pub fn wait(&self, timeout: Duration) -> io::Result<()> {
        let mut ring = [PollFd::new(&self.events, PollFlags::IN)];
        let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
        match poll(&mut ring, Some(&timeout)) {
            // A signal: the caller looks at what it asked for.
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Tells the programs which groups of step probes are attached everywhere
    /// (odd) or not (even).
    ///
    /// # Errors
    ///
    /// When the map cannot be written.
    pub fn set_generations(&mut self, steps: u32, key_derivation: u32) -> Result<(), MapError> {
        let value = tlsprof_control {
            steps_generation: steps,
            key_derivation_generation: key_derivation,
        };
        self.control.set(0, &Control(value), 0)
    }

    /// Takes the handshakes that were under way in processes that have ended, each
    /// with the time of the end, and reports them as abandoned.
    pub fn abandon(&mut self, ended: &BTreeMap<u32, u64>) -> Vec<tlsprof_handshake_event> {
        // Bounded: a key that is deleted under the iteration makes it begin again.
        let keys = self.handshakes.keys().take(MAX_KEYS).filter_map(Result::ok);
        let theirs = keys.filter_map(|key| {
            let end = ended.get(&u32::try_from(key.0.pid).ok()?)?;
            Some((key, *end))
        });
        let theirs: Vec<(ConnectionObject, u64)> = theirs.collect();
        let mut events = Vec::new();
        for (key, end) in theirs {
            let Ok(Progress(handshake)) = self.handshakes.get(&key, 0) else {
                continue;
            };
            if self.handshakes.remove(&key).is_ok() {
                events.push(abandoned(handshake, end));
            }
        }
        events
    }

    /// Lost data by `enum tlsprof_loss`, since loading.
    pub fn losses(&self) -> [u64; TLSPROF_LOSS_COUNT as usize] {
        sums(&self.losses)
    }

    /// What ran, since loading.
    pub fn hits(&self) -> Hits {
        Hits::new(sums(&self.hits))
    }
}

/// Records taken in one turn: more than the ring holds.
const MAX_RECORDS: usize = 131_072;
/// Handshakes under way that are looked at when processes have ended.
pub(super) const MAX_KEYS: usize = 262_144;

/// As handshake_end() in `bpf/include/handshake.h` would have it.
fn abandoned(handshake: tlsprof_handshake, end: u64) -> tlsprof_handshake_event {
    let mut event = handshake.event;
    event.header.kind = TLSPROF_EVENT_HANDSHAKE;
    event.header.time = end;
    event.duration = end.saturating_sub(handshake.began);
    event.outcome = u8::try_from(TLSPROF_OUTCOME_ABANDONED).unwrap_or_default();
    event
}

/// Each element summed over CPUs; 0 where it cannot be read.
fn sums<const N: usize>(map: &PerCpuArray<MapData, u64>) -> [u64; N] {
    std::array::from_fn(|index| {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        map.get(&index, 0).map_or(0, |values| values.iter().sum())
    })
}
