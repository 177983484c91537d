//! `tlsprof report` on the command line, and what it profiles, as `tlsprof top` does.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::form::{OUTPUT, Output, ReportFormat};
use crate::config::parse_duration;
use tlsprof_discover::selection::Selection;

/// How long `report` profiles when neither a duration nor a command is given.
const DEFAULT_DURATION: Duration = Duration::from_secs(30);

/// Heading of the options on what is profiled.
pub(super) const WHAT: &str = "What to profile";
/// Heading of the options on time.
pub(super) const HOW_LONG: &str = "How long";

/// What is profiled: one of these, or everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[group(multiple = false)]
pub(crate) struct Target {
    /// Profile the service of this name
    #[arg(long, value_name = "NAME", help_heading = WHAT)]
    pub service: Option<String>,
    /// Profile the service that this process belongs to
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), help_heading = WHAT)]
    pub pid: Option<u32>,
    /// Profile the service that listens on this TCP port
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..), help_heading = WHAT)]
    pub port: Option<u16>,
}

/// Options of `tlsprof report`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ReportOptions {
    /// What is profiled.
    #[command(flatten)]
    pub(crate) target: Target,
    /// Duration of the profile, such as 30s, 2m or 500ms [default: 30s]; with COMMAND: the longest,
    /// after which COMMAND is ended
    #[arg(long, value_parser = parse_duration, help_heading = HOW_LONG)]
    duration: Option<Duration>,
    /// Profile for as long as this command runs
    #[arg(last = true, value_name = "COMMAND", help_heading = HOW_LONG)]
    command: Vec<OsString>,
    /// Run COMMAND as root, not as the user who called sudo
    #[arg(long, requires = "command", help_heading = HOW_LONG)]
    pub(crate) as_root: bool,
    /// How it is written, and where.
    #[command(flatten)]
    pub(crate) output: Output,
    /// Write a line for each finding and service only
    #[arg(long, conflicts_with = "format", help_heading = OUTPUT)]
    pub summary: bool,
    /// Show how savings were estimated, and services with little CPU time
    #[arg(long, short, conflicts_with = "summary", help_heading = OUTPUT)]
    pub(crate) verbose: bool,
    /// Write a CPU breakdown (activity, mode, module, function) to this SVG file
    #[arg(long, visible_alias = "flamegraph", value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) cpu_breakdown: Option<PathBuf>,
    /// Number of requests made by the load, for an exact CPU time per request; taken from the
    /// summary if COMMAND is ab, wrk, h2load, hey, oha or k6
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = OUTPUT)]
    pub requests: Option<u64>,
}

/// When `report` ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until<'a> {
    /// After this time.
    Elapsed(Duration),
    /// When this command, program and arguments, has ended, and after this time in any case.
    CommandEnds(&'a [OsString], Option<Duration>),
}

impl Until<'_> {
    /// How long the report lasts, if that is known.
    pub(crate) const fn length(self) -> Option<Duration> {
        match self {
            Self::Elapsed(duration) => Some(duration),
            Self::CommandEnds(..) => None,
        }
    }
}

impl Target {
    /// clap has seen to it that at most one is given.
    pub fn selection(&self) -> Selection {
        match (&self.service, self.pid, self.port) {
            (Some(name), _, _) => Selection::Service(name.clone()),
            (_, Some(pid), _) => Selection::Pid(pid),
            (_, _, Some(port)) => Selection::Port(port),
            _ => Selection::All,
        }
    }
}

impl ReportOptions {
    /// How long.
    pub(crate) fn until(&self) -> Until<'_> {
        if self.command.is_empty() {
            Until::Elapsed(self.duration.unwrap_or(DEFAULT_DURATION))
        } else {
            Until::CommandEnds(&self.command, self.duration)
        }
    }

    /// Form of the report.
    pub(crate) fn format(&self) -> ReportFormat {
        if self.summary {
            ReportFormat::Text
        } else {
            self.output.format()
        }
    }
}
