//! How to profile.

use std::path::PathBuf;
use std::time::Duration;

use super::governor::{Duty, Keep};
use super::rates::Rates;
use tlsprof_discover::selection::Selection;
use tlsprof_kernel::connections::ConnectionHooks;
use tlsprof_kernel::object::UprobeMode;
use tlsprof_kernel::samples::Sampling;

/// How to profile.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file that describes the kernel's types, for kernels that do not show them.
    pub btf: Option<PathBuf>,
    /// What to profile.
    pub selection: Selection,
    /// Whether TLS libraries are probed.
    pub library: bool,
    /// When the public-key steps of handshakes are probed.
    pub steps: Duty,
    /// When key derivation is probed.
    pub(crate) key_derivation: Duty,
    /// Share of the targets' CPU time that profiling may cost; None for no limit.
    pub(crate) budget: Option<f64>,
    /// What that limit must not take.
    pub keep: Keep,
    /// Forces a way to attach uprobes.
    pub(crate) uprobe_mode: Option<UprobeMode>,
    /// Most handshakes under way at the same time.
    pub handshakes_in_progress: u32,
    /// How long nothing may move on a connection in a handshake.
    pub(crate) handshake_silence: Duration,
    /// How much of TCP connections is followed.
    pub connections: ConnectionHooks,
    /// How the CPUs are sampled in the beginning.
    pub sampling: Sampling,
    /// And how often later.
    pub(crate) rates: Rates,
    /// Whether samples are kept by the code that they hit, for a CPU breakdown.
    pub spots: bool,
}
