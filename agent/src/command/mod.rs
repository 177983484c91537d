//! The commands of the command line.

mod agent;
mod compare;
mod doctor;
mod list;
mod load_tool;
mod log;
mod monitor;
mod output;
mod progress;
mod report;
mod tee;
mod top;

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::calibrate;
use crate::cli::{Command, Invocation, Target};
use crate::config::{Config, LibraryProbes, StepProbes};
use crate::session::{Duty, Options};
use tlsprof_discover::selection::Selection;
use tlsprof_kernel::samples::Sampling;
use tlsprof_ledger::{Ledger, SharedLedger};

/// Does what the user asked for. Exit status: that of a profiled command, else 0.
///
/// # Errors
///
/// What went wrong and what to do; exit status 1 is for the caller.
pub fn run(invocation: Invocation) -> Result<ExitCode> {
    let kept = log::init(
        invocation.log,
        matches!(invocation.command, Command::Top(_)),
    );
    let config = || -> Result<Config> {
        let mut config = Config::load(invocation.config.as_deref())?;
        let named = invocation.btf.clone();
        config.profile.btf = named.or(config.profile.btf);
        Ok(config)
    };
    match invocation.command {
        Command::List(options) => {
            config()?;
            list::run(options)
        }
        Command::Agent(options) => agent::run(&options, &config()?),
        Command::Report(options) => report::run(&options, &config()?),
        // Reports of any host, by any user.
        Command::Compare(options) => compare::run(&options),
        Command::Top(options) => top::run(&options, &config()?, &kept),
        Command::Doctor(format) => doctor::run(format, &config()?),
        // Without privileges, and without the configuration.
        Command::Calibrate(library, work) => Ok(calibrate::run_child(&library, work)),
    }
}

/// How long one turn of a session waits for evidence.
const TURN: Duration = Duration::from_millis(100);
/// Windows of key derivation in a report are at most this far apart.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// `budget` is the share of the targets' CPU time that probes may cost. It binds
/// only where the step probes are the program's choice.
fn session_options(config: &Config, selection: Selection, budget: Option<f64>) -> Options {
    let profile = &config.profile;
    // A report is short, and its load may begin late: it has a window more often.
    let period = match budget {
        Some(_) => profile.key_derivation_interval,
        None => profile.key_derivation_interval.min(REPORT_INTERVAL),
    };
    let windows = Duty {
        window: profile.key_derivation_window,
        period,
    };
    let (steps, key_derivation, budget) = match profile.steps {
        StepProbes::Auto => (Duty::ALWAYS, windows, budget),
        StepProbes::Always => (Duty::ALWAYS, Duty::ALWAYS, None),
        StepProbes::Off => (Duty::NEVER, Duty::NEVER, None),
    };
    Options {
        btf: profile.btf.clone(),
        selection,
        library: profile.library == LibraryProbes::Auto,
        steps,
        key_derivation,
        budget,
        uprobe_mode: profile.uprobes,
        handshakes_in_progress: config.limits.handshakes_in_progress,
        handshake_silence: config.limits.handshake_silence,
        connections: profile.connections,
        sampling: sampling(config),
        ask_certificates: profile.ask_certificates,
        spots: false,
    }
}

const fn sampling(config: &Config) -> Sampling {
    Sampling {
        frequency: config.profile.sample_frequency,
        different: config.limits.samples,
    }
}

fn new_ledger(config: &Config) -> SharedLedger {
    SharedLedger::new(RwLock::new(Ledger::new((&config.limits).into())))
}

fn selection(target: &Target) -> Selection {
    match target {
        Target::All => Selection::All,
        Target::Service(name) => Selection::Service(name.clone()),
        Target::Pid(pid) => Selection::Pid(*pid),
        Target::Port(port) => Selection::Port(*port),
    }
}

/// A flag that SIGINT and SIGTERM raise: the profile ends early, nothing is lost.
fn stop_flag() -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&flag)).context("cannot handle signals")?;
    }
    Ok(flag)
}
