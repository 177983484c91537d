//! Load tests that `tlsprof report` runs on this host.

use std::fmt;
use std::time::SystemTime;

use prometheus_client::encoding::DescriptorEncoder;

use crate::load_test::LoadTests;

use super::families::{REPORT_RUNNING, REPORT_START_TIME};
use super::rows::{one, write};

pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, tests: LoadTests) -> fmt::Result {
    write(encoder, &REPORT_RUNNING, one(u64::from(tests.running)))?;
    let since = |began: SystemTime| began.duration_since(SystemTime::UNIX_EPOCH).ok();
    let began = tests.began.and_then(since);
    write(encoder, &REPORT_START_TIME, began.into_iter().flat_map(one))
}
