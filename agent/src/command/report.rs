//! `tlsprof report`: profiles for a while, or while a command runs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command as Process, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use jiff::Timestamp;

use super::load_tool::LoadTool;
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
use tlsprof_outlet::report::{self, json};
use tlsprof_report::model::{Command, Requests};
use tlsprof_report::{Facts, build};

pub(super) fn run(options: &ReportOptions, config: &Config) -> Result<ExitCode> {
    // Before anything else: nothing is lost if the report could not be written.
    let create = |path: Option<&Path>, what| path.map(|path| Output::to(path, what));
    let output = create(options.output.as_deref(), "the report").transpose()?;
    let graph = create(options.cpu_breakdown.as_deref(), "the CPU breakdown").transpose()?;
    let stop = stop_flag()?;
    eprintln!("tlsprof: attaching...");
    let mut session_options = session_options(config, selection(&options.target), None);
    session_options.ask_certificates |= options.ask_certificates;
    session_options.spots = graph.is_some();
    let mut session = Session::start(&session_options, new_ledger(config))?;
    if let (Some(_), Sampling::Off(reason)) = (&graph, session.ledger().sampling()) {
        bail!("a CPU breakdown needs CPU samples, and there are none: {reason}");
    }
    eprintln!("tlsprof: profiling {}", session.coverage());
    if let Some(note) = session.note_on_library() {
        eprintln!("tlsprof: {note}");
    }
    let started_at = format!("{:.0}", Timestamp::now());
    let load = run_load(&mut session, options, &stop)?;
    session.finish(|_, _| {})?;
    let duration = session.elapsed();
    let status = load
        .command
        .as_ref()
        .map_or(0, |command| command.exit_status);
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
    write("the report", output, |style| match options.format {
        ReportFormat::Text => Ok(report::text(&report, style, options.verbose)),
        ReportFormat::Json => json::render(&report).context("cannot write the report as JSON"),
        ReportFormat::Html => Ok(report::html(&report)),
    })?;
    if let Some(graph) = graph {
        draw(&session.stacks(), graph)?;
    }
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(1)))
}

/// What the server was profiled under.
struct Load {
    /// The command, if one was run.
    command: Option<Command>,
    /// By the user, else by the load tool.
    requests: Option<Requests>,
    /// See [`Setting::client_closes`].
    client_closes: Option<&'static str>,
}

/// Profiles for the time that was asked for, or while the command runs.
fn run_load(session: &mut Session, options: &ReportOptions, stop: &AtomicBool) -> Result<Load> {
    let mut load = Load {
        command: None,
        requests: options
            .requests
            .map(|count| Requests::new(count, "--requests")),
        client_closes: None,
    };
    match &options.until {
        Until::Elapsed(duration) => profile(session, Some(*duration), stop, || Ok(false))?,
        Until::CommandEnds(arguments) => {
            let tool = LoadTool::of(arguments);
            let (command, printed) = profile_command(session, arguments, tool.as_ref(), stop)?;
            load.command = Some(command);
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
    stop: &AtomicBool,
    mut is_over: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let mut progress = Progress::new(planned);
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

/// The command, and what a load tool printed at its end.
fn profile_command(
    session: &mut Session,
    arguments: &[OsString],
    tool: Option<&LoadTool>,
    stop: &AtomicBool,
) -> Result<(Command, String)> {
    let _mark = mark();
    let is_read = tool.is_some_and(|tool| !tool.draws() || !io::stdout().is_terminal());
    let mut child = ChildGuard(start(arguments, is_read)?);
    let tee = child.0.stdout.take().map(Tee::of);
    let mut ended = None;
    profile(session, None, stop, || {
        ended = child.0.try_wait().context("cannot wait for the command")?;
        Ok(ended.is_some())
    })?;
    let status = match ended {
        Some(status) => status,
        // Stopped early: the command gets the signal from the terminal too, or is
        // reported now.
        None => child.stop()?,
    };
    let command = Command {
        arguments: arguments
            .iter()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect(),
        exit_status: code(status),
    };
    Ok((command, tee.map_or_else(String::new, Tee::end)))
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
        }
        self.0.wait().context("cannot wait for the command")
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

fn draw(stacks: &BTreeMap<Stack, u64>, graph: Output) -> Result<()> {
    let path = graph.path().display().to_string();
    graph
        .fill(|file| {
            let mut out = BufWriter::new(file);
            flamegraph::render(stacks, &mut out)?;
            Ok(out.flush()?)
        })
        .with_context(|| format!("there is no CPU breakdown in {path}"))?;
    eprintln!("tlsprof: CPU breakdown written to {path}");
    Ok(())
}
