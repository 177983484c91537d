//! `tlsprof report`: profiles for a while, or while a command runs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command as Process, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use jiff::Timestamp;

use super::load_tool::LoadTool;
use super::notices::Notices;
use super::output::{Output, write};
use super::progress::Progress;
use super::setup::{TURN, new_ledger, selection, session_options, stop_flag};
use super::tee::Tee;
use crate::cli::{ReportFormat, ReportOptions, Until};
use crate::config::Config;
use crate::session::Session;
use tlsprof_advise::{Setting, Thresholds};
use tlsprof_discover::host::aes_in_hardware;
use tlsprof_ledger::Sampling;
use tlsprof_outlet::flamegraph::{self, Stack};
use tlsprof_outlet::load_test;
use tlsprof_outlet::report::{self, json, summary};
use tlsprof_report::model::{Command, Requests};
use tlsprof_report::{Facts, build};

pub(super) fn run(options: &ReportOptions, config: &Config, notices: Notices) -> Result<ExitCode> {
    // Before anything else: nothing is lost if the report could not be written.
    let create = |path: Option<&Path>, what| path.map(|path| Output::to(path, what));
    let output = create(options.output.as_deref(), "the report").transpose()?;
    let graph = create(options.cpu_breakdown.as_deref(), "the CPU breakdown").transpose()?;
    let stop = stop_flag()?;
    notices.say("attaching...");
    let mut session_options = session_options(config, selection(&options.target), None);
    session_options.ask_certificates |= options.ask_certificates;
    session_options.spots = graph.is_some();
    let mut session = Session::start(&session_options, new_ledger(config))?;
    if let (Some(_), Sampling::Off(reason)) = (&graph, session.ledger().sampling()) {
        bail!("a CPU breakdown needs CPU samples, and there are none: {reason}");
    }
    notices.say(format_args!("profiling {}", session.coverage()));
    if let Some(note) = session.note_on_library() {
        notices.say(note);
    }
    let started_at = format!("{:.0}", Timestamp::now());
    let load = run_load(&mut session, options, &stop, notices)?;
    session.finish(|_, _| {})?;
    let duration = session.elapsed();
    let status = load.status();
    let ports = session.ports();
    let services = session.service_facts(&ports);
    let setting = Setting {
        elapsed: duration,
        aes_in_hardware: aes_in_hardware(),
        client_closes: load.client_closes,
    };
    let findings = session.findings(&services, setting, Thresholds::from(&config.findings));
    let facts = Facts {
        host: session.host(),
        started_at,
        duration,
        services,
        findings,
        losses: session.losses(),
        agent: session.cost(),
        command: load.command,
        requests: load.requests,
        notes: session.notes(&ports),
    };
    let report = build(facts, &session.ledger());
    write("the report", output, notices, |style| {
        match options.format {
            ReportFormat::Text if options.summary => Ok(summary::text(&report, style)),
            ReportFormat::Text => Ok(report::text(&report, style, options.verbose)),
            ReportFormat::Json => json::render(&report).context("cannot write the report as JSON"),
            ReportFormat::Html => Ok(report::html(&report)),
        }
    })?;
    if let Some(graph) = graph {
        draw(&session.stacks(), graph, notices)?;
    }
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(1)))
}

/// What the server was profiled under.
struct Load {
    /// The command, if one was run.
    command: Option<Command>,
    /// It was ended because it ran for longer than the user wanted.
    is_cut: bool,
    /// By the user, else by the load tool.
    requests: Option<Requests>,
    /// See [`Setting::client_closes`].
    client_closes: Option<&'static str>,
}

impl Load {
    /// The exit status that the load leads to: what the user had cut short has not failed.
    fn status(&self) -> i32 {
        let command = self.command.as_ref().filter(|_| !self.is_cut);
        command.map_or(0, |command| command.exit_status)
    }
}

/// Profiles for the time that was asked for, or while the command runs.
fn run_load(
    session: &mut Session,
    options: &ReportOptions,
    stop: &AtomicBool,
    notices: Notices,
) -> Result<Load> {
    let mut load = Load {
        command: None,
        is_cut: false,
        requests: options
            .requests
            .map(|count| Requests::new(count, "--requests")),
        client_closes: None,
    };
    match &options.until {
        Until::Elapsed(duration) => {
            let progress = Progress::new(Some(*duration), false, notices);
            profile(session, Some(*duration), progress, stop, || Ok(false))?;
        }
        Until::CommandEnds(arguments, at_most) => {
            let tool = LoadTool::of(arguments);
            let progress = Progress::new(*at_most, true, notices);
            let run = Run {
                arguments,
                at_most: *at_most,
                tool: tool.as_ref(),
            };
            let printed;
            (load.command, load.is_cut, printed) = run.profile(session, progress, stop)?;
            load.client_closes = tool.as_ref().and_then(LoadTool::closes);
            let counted = tool.and_then(|tool| Some((tool.requests(&printed)?, tool.name())));
            load.requests = load
                .requests
                .or(counted.map(|(count, tool)| Requests::new(count, tool)));
        }
    }
    Ok(load)
}

fn profile(
    session: &mut Session,
    planned: Option<Duration>,
    mut progress: Progress,
    stop: &AtomicBool,
    mut is_over: impl FnMut() -> Result<bool>,
) -> Result<()> {
    while !is_over()? && !stop.load(Ordering::Relaxed) {
        let left = planned.map_or(TURN, |planned| planned.saturating_sub(session.elapsed()));
        if left.is_zero() {
            break;
        }
        session.turn(left.min(TURN), |_, _| {})?;
        progress.show(session);
    }
    progress.finish();
    Ok(())
}

/// A command under which the server is profiled.
struct Run<'a> {
    arguments: &'a [OsString],
    /// How long it may run.
    at_most: Option<Duration>,
    tool: Option<&'a LoadTool>,
}

impl Run<'_> {
    /// The command, whether it ran for too long, and what a load tool printed at its end.
    fn profile(
        &self,
        session: &mut Session,
        progress: Progress,
        stop: &AtomicBool,
    ) -> Result<(Option<Command>, bool, String)> {
        let _mark = mark();
        let is_read = |tool: &LoadTool| !tool.draws() || !io::stdout().is_terminal();
        let mut child = ChildGuard(start(self.arguments, self.tool.is_some_and(is_read))?);
        let tee = child.0.stdout.take().map(Tee::of);
        let mut ended = None;
        profile(session, self.at_most, progress, stop, || {
            ended = child.0.try_wait().context("cannot wait for the command")?;
            Ok(ended.is_some())
        })?;
        let is_cut = ended.is_none() && !stop.load(Ordering::Relaxed);
        let status = match ended {
            Some(status) => status,
            // Stopped early: the command gets the signal from the terminal too, or is
            // reported now.
            None => child.stop()?,
        };
        let arguments = self.arguments.iter();
        let command = Command {
            arguments: arguments
                .map(|argument| argument.to_string_lossy().into_owned())
                .collect(),
            exit_status: code(status),
        };
        let printed = tee.map_or_else(String::new, Tee::end);
        Ok((Some(command), is_cut, printed))
    }
}

/// Lets an agent on this host know of the load test, until the mark is dropped.
fn mark() -> Option<load_test::Mark> {
    let mark = load_test::Mark::set(Path::new(load_test::PATH));
    if let Err(error) = &mark {
        let path = load_test::PATH;
        tracing::info!("an agent on this host cannot see this load test: {path}: {error}");
    }
    mark.ok()
}

/// `is_read`: what it prints goes through a pipe of ours.
fn start(arguments: &[OsString], is_read: bool) -> Result<Child> {
    let [program, rest @ ..] = arguments else {
        bail!("no command given")
    };
    let stdout = if is_read {
        Stdio::piped
    } else {
        Stdio::inherit
    };
    Process::new(program)
        .args(rest)
        .stdout(stdout())
        .spawn()
        .with_context(|| format!("cannot start the command `{}`", program.to_string_lossy()))
}

/// As shells have it: 128 + signal number for a command ended by a signal.
fn code(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// How long a command has to end by itself when it is told to.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ends the command if the profile fails: it was ours to end.
struct ChildGuard(Child);

impl ChildGuard {
    fn stop(&mut self) -> Result<ExitStatus> {
        if self.0.try_wait()?.is_none() {
            let pid = i32::try_from(self.0.id())
                .ok()
                .and_then(rustix::process::Pid::from_raw);
            if let Some(pid) = pid {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
            let began = Instant::now();
            while self.0.try_wait()?.is_none() {
                if began.elapsed() > PATIENCE {
                    self.0.kill()?;
                    break;
                }
                thread::sleep(TURN);
            }
        }
        self.0.wait().context("cannot wait for the command")
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

fn draw(stacks: &BTreeMap<Stack, u64>, graph: Output, notices: Notices) -> Result<()> {
    let path = graph.path().display().to_string();
    graph
        .fill(|file| {
            let mut out = BufWriter::new(file);
            flamegraph::render(stacks, &mut out)?;
            Ok(out.flush()?)
        })
        .with_context(|| format!("there is no CPU breakdown in {path}"))?;
    notices.say(format_args!("CPU breakdown written to {path}"));
    Ok(())
}
