//! The agent's process by the names that all Prometheus clients have for it
//! (<https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics>).

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use super::AgentStatus;
use super::families::{
    PROCESS_CPU, PROCESS_MAX_FDS, PROCESS_OPEN_FDS, PROCESS_RESIDENT_MEMORY, PROCESS_START_TIME,
    PROCESS_THREADS, PROCESS_VIRTUAL_MEMORY,
};
use super::rows::{one, write};

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

pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, status: &AgentStatus) -> fmt::Result {
    write(encoder, &PROCESS_CPU, one(status.cpu))?;
    let memory = status.resident_memory_bytes;
    write(encoder, &PROCESS_RESIDENT_MEMORY, one(memory))?;
    let Some(process) = status.process.and_then(|ask| ask()) else {
        return Ok(());
    };
    write(encoder, &PROCESS_START_TIME, one(process.start_time))?;
    let memory = process.virtual_memory_bytes;
    write(encoder, &PROCESS_VIRTUAL_MEMORY, one(memory))?;
    write(encoder, &PROCESS_OPEN_FDS, one(process.open_fds))?;
    let limit = process.max_fds.into_iter().flat_map(one);
    write(encoder, &PROCESS_MAX_FDS, limit)?;
    write(encoder, &PROCESS_THREADS, one(process.threads))
}
