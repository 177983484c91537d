//! What the kernel says of this process.

use procfs::process::{LimitValue, Process};
use procfs::{CurrentSI as _, KernelStats, ProcResult};
use tlsprof_outlet::metrics::ProcessStatus;

/// None where /proc cannot be read.
pub(super) fn status() -> Option<ProcessStatus> {
    read()
        .inspect_err(|error| tracing::debug!(%error, "this process cannot be read"))
        .ok()
}

#[allow(clippy::cast_precision_loss, reason = "Unix time in hundredths fits")]
fn read() -> ProcResult<ProcessStatus> {
    let process = Process::myself()?;
    let stat = process.stat()?;
    let began = stat.starttime as f64 / procfs::ticks_per_second() as f64;
    let max_fds = match process.limits()?.max_open_files.soft_limit {
        LimitValue::Value(limit) => Some(limit),
        LimitValue::Unlimited => None,
    };
    Ok(ProcessStatus {
        start_time: KernelStats::current()?.btime as f64 + began,
        virtual_memory_bytes: stat.vsize,
        open_fds: process.fd_count()? as u64,
        max_fds,
        threads: u64::try_from(stat.num_threads).unwrap_or_default(),
    })
}
