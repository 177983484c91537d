//! The command line, parsed into ready objects.
//!
//! Wrong usage ends the process with status 2 and a message (clap does that);
//! failures of the commands themselves are for the caller, with status 1.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::advise::Work;
use crate::calibrate::COMMAND;
use crate::config::parse_duration;

/// How long `report` profiles when neither a duration nor a command is given.
const DEFAULT_DURATION: Duration = Duration::from_secs(30);

fn work(name: &str) -> Result<Work, String> {
    let mut all = Work::ALL.into_iter();
    let found = all.find(|work| work.label() == name);
    found.ok_or_else(|| "no operations of that name".to_owned())
}

/// What the user wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The configuration file named by `--config`.
    pub config: Option<PathBuf>,
    /// What is logged to standard error.
    pub log: LogLevel,
    /// The command.
    pub command: Command,
}

/// A command with its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `tlsprof list`
    List(ListOptions),
    /// `tlsprof agent`
    Agent(AgentOptions),
    /// `tlsprof report`
    Report(ReportOptions),
    /// `tlsprof doctor`
    Doctor(Format),
    /// This program started by itself, to calibrate operations of the library at that path.
    Calibrate(PathBuf, Work),
}

/// Options of `tlsprof list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListOptions {
    /// Show the probe sites.
    pub verbose: bool,
    /// Show services without a TLS library too.
    pub all: bool,
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
    /// Form of the report.
    pub format: Format,
    /// Where it goes; standard output when None.
    pub output: Option<PathBuf>,
    /// Where a flame graph of the CPU samples goes, as an SVG.
    pub flamegraph: Option<PathBuf>,
    /// Sets `profile.ask_certificates`.
    pub ask_certificates: bool,
}

/// What `report` profiles.
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
    /// When this command, program and arguments, has ended.
    CommandEnds(Vec<OsString>),
}

/// Form of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// What is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[expect(
    missing_docs,
    reason = "the names say it, and clap would print docs in --help"
)]
pub enum LogLevel {
    Error,
    #[default]
    Warn,
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    /// The level for `tracing`.
    pub const fn level(self) -> tracing::Level {
        match self {
            Self::Error => tracing::Level::ERROR,
            Self::Warn => tracing::Level::WARN,
            Self::Info => tracing::Level::INFO,
            Self::Debug => tracing::Level::DEBUG,
            Self::Trace => tracing::Level::TRACE,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  tlsprof list                        which services could be profiled
  sudo tlsprof report                 profile all of them for 30 seconds
  sudo tlsprof report --port 443 -- wrk -d 20s https://localhost/
                                      profile while a load test runs
  sudo tlsprof agent                  serve Prometheus metrics
  sudo tlsprof doctor                 what works on this host";

const REPORT_EXAMPLES: &str = "\
Examples:
  sudo tlsprof report --duration 2m --service nginx.service
  sudo tlsprof report --format json --output profile.json
  sudo tlsprof report --service nginx.service --flamegraph nginx.svg
  sudo tlsprof report --port 443 -- wrk -d 20s https://localhost/";

const AGENT_EXAMPLES: &str = "\
Examples:
  sudo tlsprof agent
  sudo tlsprof agent --listen 0.0.0.0:9843 --service nginx.service
  curl http://127.0.0.1:9843/metrics";

/// Says where a server's CPU time goes in TLS, without restarting it.
#[derive(Debug, Parser)]
#[command(name = "tlsprof", version, after_help = EXAMPLES, subcommand_required = true)]
struct Raw {
    /// Configuration file [default: /etc/tlsprof/tlsprof.toml where it exists]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What is logged to standard error
    #[arg(long, global = true, value_name = "LEVEL", default_value = "warn")]
    log: LogLevel,
    #[command(subcommand)]
    command: RawCommand,
}

#[derive(Debug, Subcommand)]
enum RawCommand {
    /// Show the services found, their TLS libraries, and how they would be profiled
    List {
        /// Show the probe sites and why each was chosen
        #[arg(long, short)]
        verbose: bool,
        /// Show services without a TLS library too
        #[arg(long)]
        all: bool,
        /// Form of the output
        #[arg(
            long,
            default_value = "text",
            value_name = "text|json",
            hide_possible_values = true
        )]
        format: Format,
    },
    /// Profile until stopped, and serve Prometheus metrics
    #[command(after_help = AGENT_EXAMPLES)]
    Agent {
        /// Address and port of the metrics, such as 127.0.0.1:9843; overrides agent.listen
        #[arg(long, value_name = "ADDRESS")]
        listen: Option<SocketAddr>,
        /// TLS and passwords of the metrics, in the web configuration file of Prometheus's
        /// exporters; overrides agent.web_config
        #[arg(long, value_name = "FILE")]
        web_config: Option<PathBuf>,
        /// Profile this service only; may be given several times
        #[arg(long = "service", value_name = "NAME")]
        services: Vec<String>,
        /// Connect to TLS 1.3 ports to learn the kind of key in their certificate
        #[arg(long)]
        ask_certificates: bool,
    },
    /// Profile for a while, or while a command runs, and report
    #[command(after_help = REPORT_EXAMPLES)]
    Report(RawReport),
    /// Time the operations of a libcrypto; for tlsprof itself
    #[command(name = COMMAND, hide = true)]
    Calibrate {
        /// The library
        library: PathBuf,
        /// Which operations
        #[arg(value_parser = work)]
        work: Work,
    },
    /// Show what works on this host, what does not, and why
    Doctor {
        /// Form of the output
        #[arg(
            long,
            default_value = "text",
            value_name = "text|json",
            hide_possible_values = true
        )]
        format: Format,
    },
}

#[derive(Debug, Args)]
struct RawReport {
    /// How long to profile, such as 30s, 2m or 500ms [default: 30s]
    #[arg(long, value_parser = parse_duration, conflicts_with = "command")]
    duration: Option<Duration>,
    /// Profile the service of this name
    #[arg(long, value_name = "NAME", group = "target")]
    service: Option<String>,
    /// Profile the service that this process belongs to
    #[arg(long, group = "target", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Profile the service that listens on this TCP port
    #[arg(long, group = "target", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Form of the report
    #[arg(
        long,
        default_value = "text",
        value_name = "text|json",
        hide_possible_values = true
    )]
    format: Format,
    /// Write the report to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write a flame graph of the CPU time, by activity, module and function, to this SVG file
    #[arg(long, value_name = "FILE")]
    flamegraph: Option<PathBuf>,
    /// Connect to TLS 1.3 ports to learn the kind of key in their certificate
    #[arg(long)]
    ask_certificates: bool,
    /// Profile for as long as this command runs
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Parses the arguments of this process. Prints help or the error and ends the
/// process where there is nothing to do: status 0 for help, 2 for wrong usage.
pub fn parse() -> Invocation {
    Raw::parse().into()
}

/// Parses arguments, the program's name first.
///
/// # Errors
/// When the usage is wrong, and for `--help` and `--version`.
pub fn parse_from<I, T>(arguments: I) -> Result<Invocation, clap::Error>
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    Raw::try_parse_from(arguments).map(Into::into)
}

/// The definition of the command line, for documentation and completions.
pub fn definition() -> clap::Command {
    Raw::command()
}

impl From<Raw> for Invocation {
    fn from(raw: Raw) -> Self {
        let command = match raw.command {
            RawCommand::List {
                verbose,
                all,
                format,
            } => Command::List(ListOptions {
                verbose,
                all,
                format,
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
            RawCommand::Calibrate { library, work } => Command::Calibrate(library, work),
            RawCommand::Doctor { format } => Command::Doctor(format),
        };
        Self {
            config: raw.config,
            log: raw.log,
            command,
        }
    }
}

impl From<RawReport> for ReportOptions {
    fn from(raw: RawReport) -> Self {
        // clap has seen to it that at most one is given.
        let target = match (raw.service, raw.pid, raw.port) {
            (Some(name), _, _) => Target::Service(name),
            (_, Some(pid), _) => Target::Pid(pid),
            (_, _, Some(port)) => Target::Port(port),
            _ => Target::All,
        };
        let until = if raw.command.is_empty() {
            Until::Elapsed(raw.duration.unwrap_or(DEFAULT_DURATION))
        } else {
            Until::CommandEnds(raw.command)
        };
        Self {
            target,
            until,
            format: raw.format,
            output: raw.output,
            flamegraph: raw.flamegraph,
            ask_certificates: raw.ask_certificates,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use super::*;

    fn parsed(arguments: &str) -> Invocation {
        parse_from(arguments.split(' ')).unwrap()
    }

    fn report(arguments: &str) -> ReportOptions {
        match parsed(arguments).command {
            Command::Report(options) => options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }

    #[test]
    fn report_defaults() {
        let options = report("tlsprof report");
        assert_eq!(options.target, Target::All);
        assert_eq!(options.until, Until::Elapsed(Duration::from_secs(30)));
        assert_eq!((options.format, options.output), (Format::Text, None));
    }

    #[test]
    fn a_flame_graph_is_drawn_where_it_is_asked_for() {
        assert_eq!(report("tlsprof report").flamegraph, None);
        let options = report("tlsprof report --flamegraph cpu.svg --output cpu.txt");
        assert_eq!(options.flamegraph, Some("cpu.svg".into()));
        assert_eq!(options.output, Some("cpu.txt".into()));
    }

    #[test]
    fn report_with_a_command_ends_with_it() {
        let options = report("tlsprof report --port 443 --format json -- wrk -d 20s --pid");
        assert_eq!(options.target, Target::Port(443));
        let command = ["wrk", "-d", "20s", "--pid"].map(OsString::from).to_vec();
        assert_eq!(options.until, Until::CommandEnds(command));
        assert_eq!(options.format, Format::Json);
    }

    #[test]
    fn global_flags_go_before_or_after_the_command() {
        for arguments in [
            "tlsprof --config c.toml --log debug doctor --format json",
            "tlsprof doctor --format json --config c.toml --log debug",
        ] {
            let invocation = parsed(arguments);
            assert_eq!(invocation.config, Some("c.toml".into()));
            assert_eq!(invocation.log, LogLevel::Debug);
            assert_eq!(invocation.command, Command::Doctor(Format::Json));
        }
    }

    #[test]
    fn certificates_are_asked_for_only_if_the_user_says_so() {
        assert!(!report("tlsprof report").ask_certificates);
        assert!(report("tlsprof report --ask-certificates").ask_certificates);
        let agent = parsed("tlsprof agent --ask-certificates").command;
        let options = AgentOptions {
            listen: None,
            web_config: None,
            services: Vec::new(),
            ask_certificates: true,
        };
        assert_eq!(agent, Command::Agent(options));
    }

    #[test]
    fn agent_takes_several_services() {
        let arguments = "tlsprof agent --listen [::1]:9 --web-config w --service a --service b";
        let invocation = parsed(arguments);
        let options = AgentOptions {
            listen: Some("[::1]:9".parse().unwrap()),
            web_config: Some("w".into()),
            services: vec!["a".into(), "b".into()],
            ask_certificates: false,
        };
        assert_eq!(invocation.command, Command::Agent(options));
    }

    #[test]
    fn wrong_usage_has_exit_status_2() {
        for arguments in [
            "tlsprof",
            "tlsprof profile",
            "tlsprof report --duration soon",
            "tlsprof report --duration 0s",
            "tlsprof report --pid 0",
            "tlsprof report --port 70000",
            "tlsprof report --pid 1 --port 443",
            "tlsprof report --duration 5s -- wrk",
            "tlsprof report stray",
            "tlsprof report --format xml",
            "tlsprof agent --listen nowhere",
        ] {
            let error = parse_from(arguments.split(' ')).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{arguments}");
        }
        let help = parse_from(["tlsprof", "report", "--help"]).unwrap_err();
        assert_eq!(help.exit_code(), 0);
        assert!(help.to_string().contains("Examples:"));
    }

    #[test]
    fn a_wrong_duration_is_explained() {
        let error = parse_from(["tlsprof", "report", "--duration", "30"]).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("`30` is not a duration, such as `30s`")
        );
    }
}
