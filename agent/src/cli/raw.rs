//! The definition of the command line, as clap parses it.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use super::compare::{self, RawCompare};
use super::form::{Format, LogLevel, RawForm, ReportFormat};
use super::options::{
    AgentOptions, Command, DoctorOptions, Invocation, ListOptions, ReportOptions, Target,
    TopOptions, Until,
};
use crate::calibrate::COMMAND;
use crate::config::parse_duration;
use tlsprof_advise::Work;

/// How long `report` profiles when neither a duration nor a command is given.
const DEFAULT_DURATION: Duration = Duration::from_secs(30);

fn work(name: &str) -> Result<Work, String> {
    let mut all = Work::ALL.into_iter();
    let found = all.find(|work| work.label() == name);
    found.ok_or_else(|| "unknown operation".to_owned())
}

const EXAMPLES: &str = "\
Examples:
  tlsprof list                        which services can be profiled?
  sudo tlsprof report                 profile all of them for 30 seconds
  sudo tlsprof report --port 443 -- wrk -d 20s https://localhost/
                                      profile while a load test runs
  tlsprof compare before.json after.json
                                      what changed, and is it significant?
  sudo tlsprof top                    watch them in the terminal
  sudo tlsprof agent                  serve Prometheus metrics
  sudo tlsprof doctor                 what works on this host?";

const REPORT_EXAMPLES: &str = "\
Examples:
  sudo tlsprof report --duration 2m --service nginx.service
  sudo tlsprof report --format json --output profile.json
  sudo tlsprof report --format html --output profile.html
  sudo tlsprof report --service nginx.service --flamegraph nginx.svg
  sudo tlsprof report --port 443 -- wrk -d 20s https://localhost/";

const TOP_EXAMPLES: &str = "\
Examples:
  sudo tlsprof top                    all services, figures every 2 seconds
  sudo tlsprof top --port 443         the service that listens on port 443
  sudo tlsprof top --interval 10s     steadier figures under low load
  ssh -t web1 sudo tlsprof top        on another host

Keys: arrows select and sort, Enter opens a service, ? shows all keys. Colours follow the
terminal's theme; NO_COLOR=1 disables them.";

const AGENT_EXAMPLES: &str = "\
Examples:
  sudo tlsprof agent
  sudo tlsprof agent --listen 0.0.0.0:9843 --service nginx.service
  curl http://127.0.0.1:9843/metrics";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  sudo tlsprof doctor                 is this host ready, and what works on it?
  sudo tlsprof doctor --format json | jq .ready
                                      for scripts; the exit status says it too

Exit status: 0 if the host is ready, 1 if not.";

/// Measures how much CPU your servers spend on TLS, without restarting them.
#[derive(Debug, Parser)]
#[command(name = "tlsprof", version, after_help = EXAMPLES, subcommand_required = true)]
pub(super) struct Raw {
    /// Configuration file [default: /etc/tlsprof/tlsprof.toml where it exists]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Type information (BTF) for a kernel without /sys/kernel/btf/vmlinux; overrides profile.btf
    #[arg(long, global = true, value_name = "FILE")]
    btf: Option<PathBuf>,
    /// Log level on standard error
    #[arg(long, global = true, value_name = "LEVEL", default_value = "warn")]
    log: LogLevel,
    #[command(subcommand)]
    command: RawCommand,
}

#[derive(Debug, Subcommand)]
enum RawCommand {
    /// List services, their TLS libraries, and how they would be profiled
    List {
        /// Show the probe sites and why each was chosen
        #[arg(long, short)]
        verbose: bool,
        /// Include services without a TLS library
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        form: RawForm<Format>,
    },
    /// Profile until stopped and serve Prometheus metrics
    #[command(after_help = AGENT_EXAMPLES)]
    Agent {
        /// Address and port to listen on, such as 127.0.0.1:9843; overrides agent.listen
        #[arg(long, value_name = "ADDRESS")]
        listen: Option<SocketAddr>,
        /// Web configuration file with TLS and passwords, as for Prometheus exporters; overrides
        /// agent.web_config
        #[arg(long, value_name = "FILE")]
        web_config: Option<PathBuf>,
        /// Profile only this service; repeatable
        #[arg(long = "service", value_name = "NAME")]
        services: Vec<String>,
        /// Connect to TLS 1.3 ports to find out the key type of their certificates
        #[arg(long)]
        ask_certificates: bool,
    },
    /// Profile for some time, or while a command runs, and write a report
    #[command(after_help = REPORT_EXAMPLES)]
    Report(RawReport),
    /// Compare reports: what changed, and is it significant?
    #[command(after_help = compare::EXAMPLES)]
    Compare(RawCompare),
    /// Watch services live in the terminal
    #[command(after_help = TOP_EXAMPLES)]
    Top {
        #[command(flatten)]
        target: RawTarget,
        /// Refresh interval, from 1s to 1m
        #[arg(long, value_parser = parse_interval, default_value = "2s")]
        interval: Duration,
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
    /// Show whether this host can be profiled, what works on it, and why the rest does not
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor {
        /// Quote the system's reasons
        #[arg(long, short)]
        verbose: bool,
        #[command(flatten)]
        form: RawForm<Format>,
    },
}

/// What is profiled: one of these, or everything.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct RawTarget {
    /// Profile the service of this name
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Profile the service that this process belongs to
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Profile the service that listens on this TCP port
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
}

#[derive(Debug, Args)]
struct RawReport {
    /// Duration of the profile, such as 30s, 2m or 500ms [default: 30s]
    #[arg(long, value_parser = parse_duration, conflicts_with = "command")]
    duration: Option<Duration>,
    #[command(flatten)]
    target: RawTarget,
    #[command(flatten)]
    form: RawForm<ReportFormat>,
    /// Write the report to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write a flame graph of the CPU time (activity, module, function) to this SVG file
    #[arg(long, value_name = "FILE")]
    flamegraph: Option<PathBuf>,
    /// Connect to TLS 1.3 ports to find out the key type of their certificates
    #[arg(long)]
    ask_certificates: bool,
    /// Number of requests made by the load, for an exact CPU time per request; taken from the
    /// summary if COMMAND is ab, wrk, h2load, hey, oha or k6
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Profile for as long as this command runs
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl From<Raw> for Invocation {
    fn from(raw: Raw) -> Self {
        let command = match raw.command {
            RawCommand::List { verbose, all, form } => Command::List(ListOptions {
                verbose,
                all,
                format: form.format,
            }),
            RawCommand::Agent {
                listen,
                web_config,
                services,
                ask_certificates,
            } => Command::Agent(AgentOptions {
                listen,
                web_config,
                services,
                ask_certificates,
            }),
            RawCommand::Report(report) => Command::Report(report.into()),
            RawCommand::Compare(compare) => Command::Compare(compare.into()),
            RawCommand::Top { target, interval } => Command::Top(TopOptions {
                target: target.into(),
                interval,
            }),
            RawCommand::Calibrate { library, work } => Command::Calibrate(library, work),
            RawCommand::Doctor { verbose, form } => Command::Doctor(DoctorOptions {
                verbose,
                format: form.format,
            }),
        };
        Self {
            config: raw.config,
            btf: raw.btf,
            log: raw.log,
            command,
        }
    }
}

impl From<RawTarget> for Target {
    /// clap has seen to it that at most one is given.
    fn from(raw: RawTarget) -> Self {
        match (raw.service, raw.pid, raw.port) {
            (Some(name), _, _) => Self::Service(name),
            (_, Some(pid), _) => Self::Pid(pid),
            (_, _, Some(port)) => Self::Port(port),
            _ => Self::All,
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

impl From<RawReport> for ReportOptions {
    fn from(raw: RawReport) -> Self {
        let until = if raw.command.is_empty() {
            Until::Elapsed(raw.duration.unwrap_or(DEFAULT_DURATION))
        } else {
            Until::CommandEnds(raw.command)
        };
        Self {
            target: raw.target.into(),
            until,
            format: raw.form.format,
            output: raw.output,
            flamegraph: raw.flamegraph,
            ask_certificates: raw.ask_certificates,
            requests: raw.requests,
        }
    }
}
