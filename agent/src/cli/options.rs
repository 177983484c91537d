//! The definition of the command line: what clap parses is what the commands take.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{ArgAction, Args, Parser, Subcommand};
use clap_complete::Shell;
use tracing::Level;

use super::compare::CompareOptions;
use super::examples;
use super::form::{Form, OUTPUT};
use super::report::{HOW_LONG, ReportOptions, Target, WHAT};
use crate::calibrate::COMMAND;
use crate::config::parse_duration;
use tlsprof_advise::Work;

/// Heading of the options that few need.
const ADVANCED: &str = "Advanced";

fn log_level() -> impl clap::builder::TypedValueParser<Value = Level> {
    let names = ["error", "warn", "info", "debug", "trace"];
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Level>())
}

/// Measures how much CPU your servers spend on TLS, without restarting them.
#[derive(Debug, Parser)]
#[command(
    name = "tlsprof",
    version,
    after_help = examples::PROGRAM,
    subcommand_required = true,
    disable_help_flag = true,
    disable_version_flag = true
)]
pub struct Invocation {
    /// Print the result and errors only: no progress, no start lines
    #[arg(long, short, global = true, help_heading = OUTPUT)]
    pub(crate) quiet: bool,
    /// Configuration file [default: /etc/tlsprof/tlsprof.toml where it exists]
    #[arg(long, global = true, value_name = "FILE", help_heading = ADVANCED)]
    pub(crate) config: Option<PathBuf>,
    /// Type information (BTF) for a kernel without /sys/kernel/btf/vmlinux; overrides profile.btf
    #[arg(long, global = true, value_name = "FILE", help_heading = ADVANCED)]
    pub btf: Option<PathBuf>,
    /// Log level on standard error
    #[arg(long, global = true, value_name = "LEVEL", default_value = "warn", value_parser = log_level(), help_heading = ADVANCED)]
    pub(crate) log: Level,
    /// Print help
    #[arg(long, short, global = true, action = ArgAction::Help, help_heading = ADVANCED)]
    help: Option<bool>,
    /// Print version
    #[arg(long, short = 'V', action = ArgAction::Version, help_heading = ADVANCED)]
    version: Option<bool>,
    /// The command
    #[command(subcommand)]
    pub command: Command,
}

/// A command with its options.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Command {
    /// Show whether this host can be profiled, what works on it, and why the rest does not
    #[command(after_help = examples::DOCTOR)]
    Doctor(DoctorOptions),
    /// List services and how each would be profiled
    #[command(after_help = examples::LIST)]
    List(ListOptions),
    /// Profile for some time, or while a command runs, and write a report
    #[command(after_help = examples::REPORT)]
    Report(ReportOptions),
    /// Watch services live in the terminal
    #[command(after_help = examples::TOP)]
    Top(TopOptions),
    /// Compare reports: what changed, and is it significant?
    #[command(after_help = examples::COMPARE)]
    Compare(CompareOptions),
    /// Explain a finding of a report, or list all findings
    #[command(after_help = examples::EXPLAIN)]
    Explain {
        /// Name of the finding, such as slow-key-exchange
        finding: Option<String>,
    },
    /// Profile until stopped and serve Prometheus metrics
    #[command(after_help = examples::AGENT)]
    Agent(AgentOptions),
    /// Check the configuration, or show what is in effect
    #[command(after_help = examples::CONFIG, subcommand_required = true, subcommand)]
    Config(ConfigCommand),
    /// Write completions for a shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Show the manual page of tlsprof or of a command
    #[command(after_help = examples::MAN)]
    Man {
        /// The command, such as report
        command: Vec<String>,
    },
    /// Time the operations of a libcrypto; for tlsprof itself
    #[command(name = COMMAND, hide = true)]
    Calibrate {
        /// The library
        library: PathBuf,
        /// Which operations
        #[arg(value_parser = work)]
        work: Work,
    },
}

/// Commands on the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum ConfigCommand {
    /// Print "ok", or every error with its line and key
    #[command(after_help = examples::CONFIG)]
    Check {
        /// The file to check [default: the one that the other commands use]
        file: Option<PathBuf>,
    },
    /// Print the configuration in effect as TOML, and mark the defaults
    #[command(after_help = examples::CONFIG)]
    Show,
}

/// Options of `tlsprof doctor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct DoctorOptions {
    /// Form of the output.
    #[command(flatten)]
    pub(crate) form: Form,
    /// Quote the system's reasons
    #[arg(long, short, help_heading = OUTPUT)]
    pub(crate) verbose: bool,
}

/// Options of `tlsprof list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct ListOptions {
    /// Include programs that listen on no port
    #[arg(long, help_heading = OUTPUT)]
    pub all: bool,
    /// Form of the output.
    #[command(flatten)]
    pub(crate) form: Form,
    /// Show processes, TLS libraries, and the probe sites with the reason for each
    #[arg(long, short, help_heading = OUTPUT)]
    pub(crate) verbose: bool,
}

/// Options of `tlsprof top`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct TopOptions {
    /// What is profiled.
    #[command(flatten)]
    pub(crate) target: Target,
    /// Refresh interval, from 1s to 1m
    #[arg(long, value_parser = parse_interval, default_value = "2s", help_heading = HOW_LONG)]
    pub interval: Duration,
}

/// Options of `tlsprof agent`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct AgentOptions {
    /// Profile only this service; repeatable
    #[arg(long = "service", value_name = "NAME", help_heading = WHAT)]
    pub services: Vec<String>,
    /// Address and port to listen on, such as 127.0.0.1:9843; overrides agent.listen
    #[arg(long, value_name = "ADDRESS", help_heading = OUTPUT)]
    pub(crate) listen: Option<SocketAddr>,
    /// Web configuration file with TLS and passwords, as for Prometheus exporters; overrides
    /// agent.web_config
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) web_config: Option<PathBuf>,
}

fn work(name: &str) -> Result<Work, &'static str> {
    let mut all = Work::ALL.into_iter();
    let found = all.find(|work| work.label() == name);
    found.ok_or("unknown operation")
}

/// An interval in which there are samples to speak of, and which nobody waits for in vain.
fn parse_interval(text: &str) -> Result<Duration, String> {
    const SHORTEST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(60);
    match parse_duration(text)? {
        interval if interval < SHORTEST => Err("must be at least 1s".to_owned()),
        interval if interval > LONGEST => Err("must be at most 1m".to_owned()),
        interval => Ok(interval),
    }
}
