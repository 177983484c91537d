//! Load tests that `tlsprof report` runs on this host.

use std::fmt;
use std::time::SystemTime;

use prometheus_client::encoding::DescriptorEncoder;

use crate::outlet::load_test::running::LoadTests;

use super::collector::{NONE, Writer};

pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, tests: LoadTests) -> fmt::Result {
    Writer::gauge(
        encoder,
        "tlsprof_report_running",
        "1 while `tlsprof report -- COMMAND` runs a command on this host, else 0.",
    )?
    .value(&NONE, u64::from(tests.running))?;
    let since = |began: SystemTime| began.duration_since(SystemTime::UNIX_EPOCH).ok();
    let mut began = Writer::gauge(
        encoder,
        "tlsprof_report_start_time_seconds",
        "When the last such command was started, since 1970.",
    )?;
    match tests.began.and_then(since) {
        Some(time) => began.ratio(&NONE, time.as_secs_f64()),
        None => Ok(()),
    }
}
