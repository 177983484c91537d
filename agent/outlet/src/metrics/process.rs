//! The agent's process by the names that all Prometheus clients have for it
//! (<https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics>).

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use super::families::{
    PROCESS_CPU, PROCESS_MAX_FDS, PROCESS_OPEN_FDS, PROCESS_RESIDENT_MEMORY, PROCESS_START_TIME,
    PROCESS_THREADS, PROCESS_VIRTUAL_MEMORY,
};
use super::rows::{one, write};
use super::status::AgentStatus;

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
