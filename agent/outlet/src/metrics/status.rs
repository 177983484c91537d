//! What the agent says of itself.

use std::sync::{Arc, RwLock};
use std::time::Duration;

use crate::doctor::Capability;
use crate::load_test::LoadTests;
use tlsprof_common::Loss;

/// None until probes are attached: scrapes are answered before.
pub(super) type SharedStatus = Arc<RwLock<Option<AgentStatus>>>;

/// What the agent says of itself.
#[derive(Clone, Debug, Default)]
pub struct AgentStatus {
    /// CPU time of the agent's process.
    pub cpu: Duration,
    /// Resident memory of the agent's process.
    pub resident_memory_bytes: u64,
    /// Asks what else the kernel says of that process, once a scrape needs it; None where nobody
    /// can ask.
    pub process: Option<fn() -> Option<ProcessStatus>>,
    /// Time inside tlsprof's BPF programs.
    pub bpf_run: Duration,
    /// Runs of tlsprof's BPF programs.
    pub bpf_runs: u64,
    /// Probe hits on targets.
    pub probe_hits: u64,
    /// Estimated CPU time that targets spent on probes.
    pub target_cost: Duration,
    /// Data lost, by reason; all counts since the start.
    pub events_lost: Vec<(Loss, u64)>,
    /// Capabilities, each with its state.
    pub capabilities: Vec<Capability>,
    /// Share of the time in which the probes of public-key steps are attached.
    pub step_duty_ratio: f64,
    /// Share of the time in which TLS libraries are probed.
    pub library_duty_ratio: f64,
    /// Share of the time in which socket calls are seen.
    pub calls_duty_ratio: f64,
    /// Executable files with probes.
    pub profiled_images: u64,
    /// Running services with a TLS library, handshakes, connections or a listening socket.
    pub services: u64,
    /// Load tests of this host.
    pub load_tests: LoadTests,
}

/// What the kernel says of the process, besides CPU time and resident memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessStatus {
    /// Start time in seconds of Unix time.
    pub start_time: f64,
    /// Virtual memory.
    pub virtual_memory_bytes: u64,
    /// Open file descriptors.
    pub open_fds: u64,
    /// How many may be open at most; None where there is no limit.
    pub max_fds: Option<u64>,
    /// Its threads.
    pub threads: u64,
}
