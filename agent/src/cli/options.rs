//! What the user wants, ready for the commands.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap_complete::Shell;

use super::compare::CompareOptions;
use super::form::{Format, LogLevel, ReportFormat};
use tlsprof_advise::Work;

/// What the user wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Invocation {
    /// The configuration file named by `--config`.
    pub config: Option<PathBuf>,
    /// Overrides `profile.btf`.
    pub btf: Option<PathBuf>,
    /// What is logged to standard error.
    pub log: LogLevel,
    /// Whether standard error has nothing but errors.
    pub quiet: bool,
    /// The command.
    pub command: Command,
}

/// A command with its options.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// `tlsprof list`
    List(ListOptions),
    /// `tlsprof agent`
    Agent(AgentOptions),
    /// `tlsprof report`
    Report(ReportOptions),
    /// `tlsprof compare`
    Compare(CompareOptions),
    /// `tlsprof top`
    Top(TopOptions),
    /// `tlsprof explain`, with a finding
    Explain(Option<String>),
    /// `tlsprof config check`, with a file
    CheckConfig(Option<PathBuf>),
    /// `tlsprof config show`
    ShowConfig,
    /// `tlsprof completions`
    Completions(Shell),
    /// `tlsprof man`, with a command
    Man(Vec<String>),
    /// `tlsprof doctor`
    Doctor(DoctorOptions),
    /// This program started by itself, to calibrate operations of the library at that path.
    Calibrate(PathBuf, Work),
}

/// Options of `tlsprof list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListOptions {
    /// Show the probe sites.
    pub verbose: bool,
    /// Show programs that listen nowhere too.
    pub all: bool,
    /// Form of the output.
    pub format: Format,
}

/// Options of `tlsprof doctor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoctorOptions {
    /// Quote the system's reasons.
    pub verbose: bool,
    /// Form of the output.
    pub format: Format,
}

/// Options of `tlsprof agent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentOptions {
    /// Overrides `agent.listen`.
    pub listen: Option<SocketAddr>,
    /// Overrides `agent.web_config`.
    pub web_config: Option<PathBuf>,
    /// Profile these services only; all when empty.
    pub services: Vec<String>,
    /// Sets `profile.ask_certificates`.
    pub ask_certificates: bool,
}

/// Options of `tlsprof report`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportOptions {
    /// What is profiled.
    pub target: Target,
    /// How long.
    pub until: Until,
    /// Run the command as root, whoever called sudo.
    pub as_root: bool,
    /// Form of the report.
    pub format: ReportFormat,
    /// Whether a text has a line for each finding and service alone.
    pub summary: bool,
    /// Where it goes; standard output when None.
    pub output: Option<PathBuf>,
    /// Show in the text how savings were estimated, and services with little CPU time.
    pub verbose: bool,
    /// Where a CPU breakdown goes, as an SVG.
    pub cpu_breakdown: Option<PathBuf>,
    /// Sets `profile.ask_certificates`.
    pub ask_certificates: bool,
    /// Requests that the load made.
    pub requests: Option<u64>,
}

/// Options of `tlsprof top`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopOptions {
    /// What is profiled.
    pub target: Target,
    /// How often figures are renewed.
    pub interval: Duration,
}

/// What `report` and `top` profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// All services.
    All,
    /// The service of that name.
    Service(String),
    /// The service that this process belongs to.
    Pid(u32),
    /// The service that listens on this TCP port.
    Port(u16),
}

/// When `report` ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Until {
    /// After this time.
    Elapsed(Duration),
    /// When this command, program and arguments, has ended, and after this time in any case.
    CommandEnds(Vec<OsString>, Option<Duration>),
}
