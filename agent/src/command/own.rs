//! What the kernel says of this process.

use std::sync::LazyLock;

use procfs::process::{LimitValue, Process};
use procfs::{CurrentSI as _, KernelStats, ProcError, ProcResult};
use tlsprof_outlet::metrics::ProcessStatus;

/// When the host was started, in seconds of Unix time. Read once: /proc/stat is long on large hosts.
static BOOTED: LazyLock<Option<u64>> =
    LazyLock::new(|| KernelStats::current().ok().map(|stats| stats.btime));

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
    let booted = BOOTED.ok_or_else(|| ProcError::from("the time of the boot is not known"))?;
    let began = stat.starttime as f64 / procfs::ticks_per_second() as f64;
    let max_fds = match process.limits()?.max_open_files.soft_limit {
        LimitValue::Value(limit) => Some(limit),
        LimitValue::Unlimited => None,
    };
    Ok(ProcessStatus {
        start_time: booted as f64 + began,
        virtual_memory_bytes: stat.vsize,
        open_fds: process.fd_count()? as u64,
        max_fds,
        threads: u64::try_from(stat.num_threads).unwrap_or_default(),
    })
}
