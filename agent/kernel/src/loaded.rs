//! The loaded programs and their maps.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData, MapError, PerCpuArray, PerCpuValues, RingBuf};
use aya::util::nr_cpus;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::connections::Connections;
use super::error::{LoadError, Unavailable};
use super::hits::Hits;
use super::listeners::{Listeners, told};
use super::object::UprobeMode;
use super::plain::Pod;
use super::runs::ProgramRuns;
use super::samples::{Samples, Sampling};
use tlsprof_common::Pid;
use tlsprof_common::causes::one_line;
use tlsprof_common::contract::{
    TLSPROF_EVENT_HANDSHAKE, TLSPROF_LOSS_COUNT, TLSPROF_OUTCOME_ABANDONED, TLSPROF_TIMED_PRIVATE,
    tlsprof_call, tlsprof_connection_object, tlsprof_control, tlsprof_exchange, tlsprof_handshake,
    tlsprof_handshake_event, tlsprof_runs, tlsprof_sample, tlsprof_sample_key, tlsprof_timed,
};

/// What is loaded, before anything is attached to a target.
pub struct Loaded {
    pub(super) bpf: Ebpf,
    /// How uprobes will be attached.
    pub mode: UprobeMode,
    /// What of TCP connections is followed.
    pub connections: Connections,
    /// Samples of the CPUs; the reason if there are none.
    pub samples: Result<Samples, Unavailable>,
    /// How they are taken.
    pub sampling: Sampling,
    /// Whether probes in TLS libraries can be placed; the kernel's reason if not.
    pub library: Result<(), Arc<Unavailable>>,
    /// Attached probes have cookies (Linux 5.15); else programs stand for them.
    pub(super) has_cookies: bool,
    pub(super) events: RingBuf<MapData>,
    pub(super) control: Array<MapData, Pod<tlsprof_control>>,
    /// What `control` holds.
    pub(super) said: tlsprof_control,
    pub(super) handshakes: HashMap<MapData, Pod<tlsprof_connection_object>, Pod<tlsprof_handshake>>,
    pub(super) calls: HashMap<MapData, u32, Pod<tlsprof_call>>,
    pub(super) exchanges: HashMap<MapData, u64, Pod<tlsprof_exchange>>,
    pub(super) given_up: HashMap<MapData, u64, u8>,
    /// The most runs of programs that were reported as left out.
    pub(super) skipped: AtomicU64,
    pub(super) losses: PerCpuArray<MapData, u64>,
    pub(super) hits: PerCpuArray<MapData, u64>,
    pub(super) runs: PerCpuArray<MapData, Pod<tlsprof_runs>>,
    pub(super) timed: PerCpuArray<MapData, Pod<tlsprof_timed>>,
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
        self.said.steps_generation = steps;
        self.said.key_derivation_generation = key_derivation;
        self.say()
    }

    /// Tells the programs what a probe costs more on an instruction that the kernel does not
    /// emulate.
    ///
    /// # Errors
    ///
    /// When the map cannot be written.
    pub(super) fn set_single_step(&mut self, cost: Duration) -> Result<(), MapError> {
        self.said.single_step_ns = cost.subsec_nanos();
        self.say()
    }

    /// From now on connections that open are followed: their socket calls, and what of
    /// TLS these show.
    ///
    /// # Errors
    ///
    /// When the kernel refuses the hooks, which it let in before, or the map cannot be written.
    pub fn follow_calls(&mut self) -> anyhow::Result<()> {
        if self.connections.calls_are_out() {
            self.forget_threads()?;
            self.connections.attach_calls(&mut self.bpf)?;
        }
        Ok(self.set_calls_followed(true)?)
    }

    /// From now on connections that open are not followed; what was followed still is.
    ///
    /// # Errors
    ///
    /// When the map cannot be written.
    pub fn follow_no_more(&mut self) -> Result<(), MapError> {
        self.set_calls_followed(false)
    }

    /// What threads were at work on when the hooks came out.
    fn forget_threads(&mut self) -> anyhow::Result<()> {
        let nothing = Pod(tlsprof_timed {
            private: [0; TLSPROF_TIMED_PRIVATE as usize],
        });
        let cpus = nr_cpus().map_err(|(_, error)| error)?;
        let all = PerCpuValues::try_from(vec![nothing; cpus.get() as usize])?;
        Ok(self.timed.set(0, all, 0)?)
    }

    /// Tells the programs what is in `said`.
    fn say(&mut self) -> Result<(), MapError> {
        self.control.set(0, &Pod(self.said), 0)
    }

    fn set_calls_followed(&mut self, followed: bool) -> Result<(), MapError> {
        let generation = &mut self.said.calls_generation;
        if (*generation).is_multiple_of(2) != followed {
            *generation += 1;
        }
        self.say()
    }

    /// Takes the hooks on socket calls out. Returns the connections of the handshakes that were
    /// still followed, or had not begun yet: what becomes of those is not known.
    pub fn release_calls(&mut self) -> Vec<u64> {
        self.connections.release_calls();
        let cut = self.give_up_all();
        self.connections.release_switch();
        cut
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
        let theirs: Vec<_> = theirs.collect();
        let mut events = Vec::new();
        for (key, end) in theirs {
            let Ok(Pod(handshake)) = self.handshakes.get(&key, 0) else {
                continue;
            };
            if self.handshakes.remove(&key).is_ok() {
                events.push(abandoned(handshake, end));
            }
        }
        events
    }

    /// Forgets the calls and handshakes that are under way in TLS libraries of these processes:
    /// the probes at their ends are out.
    pub fn forget_calls(&mut self, of: impl Fn(Pid) -> bool) {
        clear(&mut self.handshakes, |key, _| {
            Pid::try_from(key.0.pid).is_ok_and(&of)
        });
        clear(&mut self.calls, |_, call| of(call.0.pid));
    }

    /// Starts the clocks of all CPUs that are on line; what came of it is in
    /// [`samples`](Self::samples).
    pub fn start_samples(&mut self) {
        self.samples = Samples::start(&mut self.bpf, self.sampling);
    }

    /// Hands over the samples since the last time, and keeps the clocks of all CPUs
    /// going; to be called about once a second.
    pub fn take_samples(&mut self, mut take: impl FnMut(&tlsprof_sample_key, &tlsprof_sample)) {
        let Ok(samples) = &mut self.samples else {
            return;
        };
        samples.drain(&mut take);
        log_unsampled(samples.follow_cpus(&mut self.bpf));
    }

    /// Samples each CPU so many times a second from now on. There is room for the samples of five
    /// seconds at the first frequency.
    pub fn set_sample_frequency(&mut self, frequency: u32) {
        self.sampling.frequency = frequency;
        self.set_sampling(Some(self.sampling));
    }

    /// Takes no samples of the CPUs until a frequency is set.
    pub fn pause_samples(&mut self) {
        self.set_sampling(None);
    }

    fn set_sampling(&mut self, rate: Option<Sampling>) {
        if let Ok(samples) = &mut self.samples {
            log_unsampled(samples.set_rate(&mut self.bpf, rate));
        }
    }

    /// Who listens where; None where the kernel does not tell.
    pub fn listeners(&mut self) -> Option<Listeners> {
        told(Listeners::new(&mut self.bpf))
    }

    /// Lost data by `enum tlsprof_loss`, since loading.
    pub fn losses(&self) -> [u64; TLSPROF_LOSS_COUNT as usize] {
        sums(&self.losses)
    }

    /// Runs of the programs, since loading.
    pub(super) fn runs(&self) -> ProgramRuns {
        ProgramRuns::read(&self.runs)
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

/// It is tried again each second.
fn log_unsampled(sampled: Result<(), LoadError>) {
    if let Err(error) = sampled {
        tracing::debug!(error = one_line(&error), "a CPU is not sampled");
    }
}

/// Takes these entries out of a map.
fn clear<K: aya::Pod, V: aya::Pod>(
    map: &mut HashMap<MapData, K, V>,
    which: impl Fn(&K, &V) -> bool,
) {
    // Bounded: a key that is deleted under the iteration makes it begin again.
    let all = map.iter().take(MAX_KEYS).filter_map(Result::ok);
    let those = all.filter(|(key, value)| which(key, value));
    let keys: Vec<K> = those.map(|(key, _)| key).collect();
    for key in &keys {
        let _gone = map.remove(key);
    }
}

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
