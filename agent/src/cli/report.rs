//! `tlsprof report` on the command line, and what it profiles, as `tlsprof top` does.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::form::{OUTPUT, RawOutput, ReportFormat};
use super::options::{ReportOptions, Target, Until};
use crate::config::parse_duration;

/// How long `report` profiles when neither a duration nor a command is given.
const DEFAULT_DURATION: Duration = Duration::from_secs(30);

/// Heading of the options on what is profiled.
pub(super) const WHAT: &str = "What to profile";
/// Heading of the options on time.
pub(super) const HOW_LONG: &str = "How long";

/// What is profiled: one of these, or everything.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(super) struct RawTarget {
    /// Profile the service of this name
    #[arg(long, value_name = "NAME", help_heading = WHAT)]
    service: Option<String>,
    /// Profile the service that this process belongs to
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), help_heading = WHAT)]
    pid: Option<u32>,
    /// Profile the service that listens on this TCP port
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..), help_heading = WHAT)]
    port: Option<u16>,
}

#[derive(Debug, Args)]
pub(super) struct RawReport {
    #[command(flatten)]
    target: RawTarget,
    /// Connect to TLS 1.3 ports to find out the key type of their certificates
    #[arg(long, help_heading = WHAT)]
    ask_certificates: bool,
    /// Duration of the profile, such as 30s, 2m or 500ms [default: 30s]; with COMMAND: the longest,
    /// after which COMMAND is ended
    #[arg(long, value_parser = parse_duration, help_heading = HOW_LONG)]
    duration: Option<Duration>,
    /// Profile for as long as this command runs
    #[arg(last = true, value_name = "COMMAND", help_heading = HOW_LONG)]
    command: Vec<OsString>,
    /// Run COMMAND as root, not as the user who called sudo
    #[arg(long, requires = "command", help_heading = HOW_LONG)]
    as_root: bool,
    #[command(flatten)]
    output: RawOutput,
    /// Write a line for each finding and service only
    #[arg(long, conflicts_with = "format", help_heading = OUTPUT)]
    summary: bool,
    /// Show how savings were estimated, and services with little CPU time
    #[arg(long, short, conflicts_with = "summary", help_heading = OUTPUT)]
    verbose: bool,
    /// Write a CPU breakdown (activity, mode, module, function) to this SVG file
    #[arg(long, visible_alias = "flamegraph", value_name = "FILE", help_heading = OUTPUT)]
    cpu_breakdown: Option<PathBuf>,
    /// Number of requests made by the load, for an exact CPU time per request; taken from the
    /// summary if COMMAND is ab, wrk, h2load, hey, oha or k6
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = OUTPUT)]
    requests: Option<u64>,
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

impl From<RawReport> for ReportOptions {
    fn from(raw: RawReport) -> Self {
        let until = if raw.command.is_empty() {
            Until::Elapsed(raw.duration.unwrap_or(DEFAULT_DURATION))
        } else {
            Until::CommandEnds(raw.command, raw.duration)
        };
        Self {
            target: raw.target.into(),
            until,
            as_root: raw.as_root,
            format: if raw.summary {
                ReportFormat::Text
            } else {
                raw.output.format()
            },
            summary: raw.summary,
            output: raw.output.output,
            verbose: raw.verbose,
            cpu_breakdown: raw.cpu_breakdown,
            ask_certificates: raw.ask_certificates,
            requests: raw.requests,
        }
    }
}
