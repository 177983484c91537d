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
mod setup;
mod tee;
mod top;

use std::process::ExitCode;

use anyhow::Result;

use crate::calibrate;
use crate::cli::{Command, Invocation};
use crate::config::Config;

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
        Command::Doctor(options) => doctor::run(options, &config()?),
        // Without privileges, and without the configuration.
        Command::Calibrate(library, work) => Ok(calibrate::run_child(&library, work)),
    }
}
