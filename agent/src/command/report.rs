//! `tlsprof report`: profiles for a while, or while a command runs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use jiff::Timestamp;

use super::caller::Caller;
use super::child::{Child, check, code};
use super::load_tool::LoadTool;
use super::notices::Notices;
use super::output::{Output, write};
use super::progress::Progress;
use super::purpose::Purpose;
use super::setup::{PRIVILEGES, TURN, new_ledger, session_options, stop_flag};
use super::tee::Tee;
use crate::cli::{ReportFormat, ReportOptions, Until};
use crate::config::Config;
use crate::session::{Options, Session};
use tlsprof_advise::Setting;
use tlsprof_common::privilege::{self, Kept};
use tlsprof_discover::host::aes_in_hardware;
use tlsprof_ledger::Sampling;
use tlsprof_outlet::flamegraph::{self, Stack};
use tlsprof_outlet::load_test;
use tlsprof_outlet::report::{self, json, summary};
use tlsprof_report::model::{Command, Requests};
use tlsprof_report::{Facts, build, mark_target};

pub(super) fn run(options: &ReportOptions, config: &Config, notices: Notices) -> Result<ExitCode> {
    // Before anything else: nothing is lost if the command does not exist, or the report could not
    // be written.
    let caller = caller_of_command(options)?;
    let create = |path: Option<&Path>, what| path.map(|path| Output::to(path, what));
    let output = create(options.output.output.as_deref(), "the report").transpose()?;
    let graph = create(options.cpu_breakdown.as_deref(), "the CPU breakdown").transpose()?;
    let stop = stop_flag()?;
    notices.say("attaching...");
    let mut session = Session::start(&of_session(options, config), new_ledger(config))?;
    if let (Some(_), Sampling::Off(reason)) = (&graph, session.ledger().sampling()) {
        bail!("a CPU breakdown needs CPU samples, and there are none: {reason}");
    }
    notices.say(format_args!("profiling {}", session.coverage()));
    if let Some(note) = session.note_on_library() {
        notices.say(note);
    }
    let started_at = format!("{:.0}", Timestamp::now());
    let load = run_load(&mut session, options, caller.as_ref(), &stop, notices)?;
    session.finish(|_, _| {})?;
    let duration = session.elapsed();
    let status = load.status();
    let ports = session.ports();
    let mut services = session.service_facts(ports);
    mark_target(&mut services, &session.ledger(), load.port);
    let setting = Setting {
        elapsed: duration,
        aes_in_hardware: aes_in_hardware(),
        client_closes: load.client_closes,
    };
    let findings = session.findings(&services, setting, config.findings);
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
        notes: session.notes(ports),
    };
    let report = build(facts, &session.ledger());
    write("the report", output, notices, |style| {
        match options.format() {
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

fn of_session(options: &ReportOptions, config: &Config) -> Options {
    let purpose = Purpose::Report(options.until().length());
    Options {
        spots: options.cpu_breakdown.is_some(),
        ..session_options(config, options.target.selection(), purpose)
    }
}

/// As whom the command is run, where it is not as this program is; that it can be run is seen to.
fn caller_of_command(options: &ReportOptions) -> Result<Option<Caller>> {
    let Until::CommandEnds(arguments, _) = options.until() else {
        return Ok(None);
    };
    check(arguments)?;
    if options.as_root {
        return Ok(None);
    }
    Caller::of_sudo()
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
    /// Where the load tool connects to; None if it does not say.
    port: Option<u16>,
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
    caller: Option<&Caller>,
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
        port: None,
    };
    let kept = Kept {
        to_start: false,
        to_calibrate: true,
        to_write_files: options.output.output.is_some() || options.cpu_breakdown.is_some(),
        to_end_commands: false,
    };
    match options.until() {
        Until::Elapsed(duration) => {
            privilege::keep_only(kept).context(PRIVILEGES)?;
            let progress = Progress::new(Some(duration), false, notices);
            profile(session, Some(duration), progress, stop, || Ok(false))?;
        }
        Until::CommandEnds(arguments, at_most) => {
            let tool = LoadTool::of(arguments);
            let progress = Progress::new(at_most, true, notices);
            if let Some(caller) = caller {
                notices.say(format_args!("the command runs as {caller}"));
            }
            let run = Run {
                arguments,
                at_most,
                tool: tool.as_ref(),
                caller,
                kept: Kept {
                    to_end_commands: true,
                    ..kept
                },
            };
            let (command, is_cut, printed) = run.profile(session, progress, stop)?;
            load.command = Some(command);
            load.is_cut = is_cut;
            load.client_closes = tool.as_ref().and_then(LoadTool::closes);
            load.port = tool.as_ref().and_then(LoadTool::port);
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
    caller: Option<&'a Caller>,
    kept: Kept,
}

impl Run<'_> {
    /// The command, whether it ran for too long, and what a load tool printed at its end.
    fn profile(
        &self,
        session: &mut Session,
        progress: Progress,
        stop: &AtomicBool,
    ) -> Result<(Command, bool, String)> {
        let _mark = mark();
        let is_read = |tool: &LoadTool| !tool.draws() || !io::stdout().is_terminal();
        let mut child = Child::start(self.arguments, self.tool.is_some_and(is_read), self.caller)?;
        privilege::keep_only(self.kept).context(PRIVILEGES)?;
        let tee = child.take_output().map(Tee::of);
        let mut ended = None;
        profile(session, self.at_most, progress, stop, || {
            ended = child.ended()?;
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
        Ok((command, is_cut, printed))
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

fn draw(stacks: &BTreeMap<Stack, u64>, graph: Output, notices: Notices) -> Result<()> {
    let path = graph.path().display().to_string();
    graph
        .fill(|file| {
            let mut out = BufWriter::new(file);
            flamegraph::render(stacks, &mut out)?;
            Ok(out.flush()?)
        })
        .with_context(|| format!("there is no CPU breakdown in {path}"))?;
    notices.say(format_args!("wrote the CPU breakdown to {path}"));
    Ok(())
}
