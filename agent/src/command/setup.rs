//! What the commands that profile have in common: how a session is set up, and how it is stopped.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::frequency::rates;
use super::purpose::Purpose;
use crate::config::{Config, LibraryProbes, StepProbes};
use crate::session::{Duty, Options};
use tlsprof_common::privilege::Kept;
use tlsprof_discover::selection::Selection;
use tlsprof_kernel::samples::Sampling;
use tlsprof_ledger::{Ledger, SharedLedger};

/// What cannot be done where the kernel lets nobody give up privileges.
pub(super) const PRIVILEGES: &str = "cannot give up privileges";

/// What is kept until the probes are attached.
pub(super) const STARTING: Kept = Kept {
    to_start: true,
    to_calibrate: false,
    to_write_files: false,
    to_end_commands: false,
};

/// How long one turn of a session waits for evidence.
pub(super) const TURN: Duration = Duration::from_millis(100);

/// Windows of key derivation in a report are at most this far apart.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// The overhead budget does not bind where the user wants all steps.
pub(super) fn session_options(config: &Config, selection: Selection, purpose: Purpose) -> Options {
    let profile = &config.profile;
    let (budget, period) = match purpose {
        Purpose::Watch => (Some(config.agent.budget), profile.key_derivation_interval),
        // A report is short, and its load may begin late: it has a window more often.
        Purpose::Report(_) => (None, profile.key_derivation_interval.min(REPORT_INTERVAL)),
    };
    let windows = Duty {
        window: profile.key_derivation_window,
        period,
    };
    let (steps, key_derivation, budget) = match profile.steps {
        StepProbes::Auto => (Duty::ALWAYS, windows, budget),
        StepProbes::Always => (Duty::ALWAYS, Duty::ALWAYS, None),
        StepProbes::Off => (Duty::NEVER, Duty::NEVER, budget),
    };
    Options {
        btf: profile.btf.clone(),
        selection,
        library: profile.library == LibraryProbes::Auto,
        steps,
        key_derivation,
        budget,
        keep: config.agent.keep,
        uprobe_mode: profile.uprobes,
        handshakes_in_progress: config.limits.handshakes_in_progress,
        handshake_silence: config.limits.handshake_silence,
        connections: profile.connections,
        sampling: sampling(config, purpose),
        rates: rates(profile.sample_frequency, purpose),
        spots: false,
    }
}

/// In the beginning.
pub(super) fn sampling(config: &Config, purpose: Purpose) -> Sampling {
    Sampling {
        frequency: rates(config.profile.sample_frequency, purpose).first(),
        different: config.limits.samples,
    }
}

pub(super) fn new_ledger(config: &Config) -> SharedLedger {
    SharedLedger::new(RwLock::new(Ledger::new((&config.limits).into())))
}

/// A flag that SIGINT and SIGTERM raise: the profile ends early, nothing is lost.
pub(super) fn stop_flag() -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&flag)).context("cannot handle signals")?;
    }
    Ok(flag)
}
