//! The commands of the command line.

mod agent;
mod caller;
mod child;
mod compare;
mod config;
mod doctor;
mod documents;
mod explain;
mod frequency;
mod list;
mod load_tool;
mod log;
mod monitor;
mod notices;
mod output;
mod own;
mod print;
mod progress;
mod purpose;
mod reload;
mod report;
mod service_manager;
mod setup;
mod tee;
mod top;

use std::process::ExitCode;

use anyhow::Result;

use self::notices::Notices;
use crate::calibrate;
use crate::cli::{Command, ConfigCommand, Invocation};
use crate::config::Config;

/// Does what the user asked for. Exit statuses: `cli::documents` lists them.
///
/// # Errors
///
/// What went wrong and what to do; exit status 1 is for the caller.
pub fn run(invocation: Invocation) -> Result<ExitCode> {
    let kept = log::init(
        invocation.log,
        matches!(invocation.command, Command::Top(_)),
    );
    let notices = Notices {
        quiet: invocation.quiet,
    };
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
        Command::Agent(options) => agent::run(&options, &config, notices),
        Command::Report(options) => report::run(&options, &config()?, notices),
        // Reports of any host, by any user.
        Command::Compare(options) => compare::run(&options, notices),
        Command::Top(options) => top::run(&options, &config()?, &kept, notices),
        Command::Explain { finding } => explain::run(finding.as_deref()),
        Command::Config(ConfigCommand::Check { file }) => {
            config::check(file.or(invocation.config).as_deref())
        }
        Command::Config(ConfigCommand::Show) => {
            let (path, btf) = (invocation.config.as_deref(), invocation.btf.as_deref());
            config::show(&config()?, path, btf)
        }
        Command::Completions { shell } => documents::completions(shell),
        Command::Man { command } => documents::manual(&command),
        Command::Doctor(options) => doctor::run(options, &config()?),
        // Without privileges, and without the configuration.
        Command::Calibrate { library, work } => Ok(calibrate::run_child(&library, work)),
    }
}
