//! The definition of the command line, as clap parses it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser, Subcommand};
use clap_complete::Shell;

use super::compare::RawCompare;
use super::examples;
use super::form::{LogLevel, OUTPUT, RawForm};
use super::options::{AgentOptions, Command, DoctorOptions, Invocation, ListOptions, TopOptions};
use super::report::{HOW_LONG, RawReport, RawTarget, WHAT};
use crate::calibrate::COMMAND;
use crate::config::parse_duration;
use tlsprof_advise::Work;

fn work(name: &str) -> Result<Work, String> {
    let mut all = Work::ALL.into_iter();
    let found = all.find(|work| work.label() == name);
    found.ok_or_else(|| "unknown operation".to_owned())
}

/// Heading of the options that few need.
const ADVANCED: &str = "Advanced";

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
pub(super) struct Raw {
    /// Print the result and errors only: no progress, no start lines
    #[arg(long, short, global = true, help_heading = OUTPUT)]
    quiet: bool,
    /// Configuration file [default: /etc/tlsprof/tlsprof.toml where it exists]
    #[arg(long, global = true, value_name = "FILE", help_heading = ADVANCED)]
    config: Option<PathBuf>,
    /// Type information (BTF) for a kernel without /sys/kernel/btf/vmlinux; overrides profile.btf
    #[arg(long, global = true, value_name = "FILE", help_heading = ADVANCED)]
    btf: Option<PathBuf>,
    /// Log level on standard error
    #[arg(long, global = true, value_name = "LEVEL", default_value = "warn", help_heading = ADVANCED)]
    log: LogLevel,
    /// Print help
    #[arg(long, short, global = true, action = ArgAction::Help, help_heading = ADVANCED)]
    help: Option<bool>,
    /// Print version
    #[arg(long, short = 'V', action = ArgAction::Version, help_heading = ADVANCED)]
    version: Option<bool>,
    #[command(subcommand)]
    command: RawCommand,
}

#[derive(Debug, Subcommand)]
enum RawCommand {
    /// Show whether this host can be profiled, what works on it, and why the rest does not
    #[command(after_help = examples::DOCTOR)]
    Doctor {
        #[command(flatten)]
        form: RawForm,
        /// Quote the system's reasons
        #[arg(long, short, help_heading = OUTPUT)]
        verbose: bool,
    },
    /// List services and how each would be profiled
    #[command(after_help = examples::LIST)]
    List {
        /// Include programs that listen on no port
        #[arg(long, help_heading = OUTPUT)]
        all: bool,
        #[command(flatten)]
        form: RawForm,
        /// Show processes, TLS libraries, and the probe sites with the reason for each
        #[arg(long, short, help_heading = OUTPUT)]
        verbose: bool,
    },
    /// Profile for some time, or while a command runs, and write a report
    #[command(after_help = examples::REPORT)]
    Report(RawReport),
    /// Watch services live in the terminal
    #[command(after_help = examples::TOP)]
    Top {
        #[command(flatten)]
        target: RawTarget,
        /// Refresh interval, from 1s to 1m
        #[arg(long, value_parser = parse_interval, default_value = "2s", help_heading = HOW_LONG)]
        interval: Duration,
    },
    /// Compare reports: what changed, and is it significant?
    #[command(after_help = examples::COMPARE)]
    Compare(RawCompare),
    /// Explain a finding of a report, or list all findings
    #[command(after_help = examples::EXPLAIN)]
    Explain {
        /// Name of the finding, such as slow-key-exchange
        finding: Option<String>,
    },
    /// Profile until stopped and serve Prometheus metrics
    #[command(after_help = examples::AGENT)]
    Agent {
        /// Profile only this service; repeatable
        #[arg(long = "service", value_name = "NAME", help_heading = WHAT)]
        services: Vec<String>,
        /// Connect to TLS 1.3 ports to find out the key type of their certificates
        #[arg(long, help_heading = WHAT)]
        ask_certificates: bool,
        /// Address and port to listen on, such as 127.0.0.1:9843; overrides agent.listen
        #[arg(long, value_name = "ADDRESS", help_heading = OUTPUT)]
        listen: Option<SocketAddr>,
        /// Web configuration file with TLS and passwords, as for Prometheus exporters; overrides
        /// agent.web_config
        #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
        web_config: Option<PathBuf>,
    },
    /// Check the configuration, or show what is in effect
    #[command(after_help = examples::CONFIG, subcommand_required = true)]
    Config {
        #[command(subcommand)]
        action: RawConfig,
    },
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

#[derive(Debug, Subcommand)]
enum RawConfig {
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

impl From<Raw> for Invocation {
    fn from(raw: Raw) -> Self {
        Self {
            config: raw.config,
            btf: raw.btf,
            log: raw.log,
            quiet: raw.quiet,
            command: raw.command.into(),
        }
    }
}

impl From<RawCommand> for Command {
    fn from(raw: RawCommand) -> Self {
        match raw {
            RawCommand::List { verbose, all, form } => Self::List(ListOptions {
                verbose,
                all,
                format: form.format,
            }),
            RawCommand::Agent {
                listen,
                web_config,
                services,
                ask_certificates,
            } => Self::Agent(AgentOptions {
                listen,
                web_config,
                services,
                ask_certificates,
            }),
            RawCommand::Report(report) => Self::Report(report.into()),
            RawCommand::Compare(compare) => Self::Compare(compare.into()),
            RawCommand::Top { target, interval } => Self::Top(TopOptions {
                target: target.into(),
                interval,
            }),
            RawCommand::Calibrate { library, work } => Self::Calibrate(library, work),
            RawCommand::Doctor { verbose, form } => Self::Doctor(DoctorOptions {
                verbose,
                format: form.format,
            }),
            RawCommand::Explain { finding } => Self::Explain(finding),
            RawCommand::Config { action } => match action {
                RawConfig::Check { file } => Self::CheckConfig(file),
                RawConfig::Show => Self::ShowConfig,
            },
            RawCommand::Completions { shell } => Self::Completions(shell),
            RawCommand::Man { command } => Self::Man(command),
        }
    }
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
