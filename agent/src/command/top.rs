//! `tlsprof top`: services under watch, until the user has seen enough.
//!
//! One thread profiles, the other one draws and takes keys: attaching to a process that has
//! just been started takes longer than anybody waits for a key.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use std::{io, thread};

use anyhow::{Context as _, Result, anyhow};
use ratatui::crossterm::event::{self, Event};

use super::log;
use super::monitor::{Monitor, about, locked};
use super::notices::Notices;
use super::purpose::Purpose;
use super::setup::{PRIVILEGES, STARTING, new_ledger, session_options, stop_flag};
use crate::cli::TopOptions;
use crate::config::Config;
use crate::session::Session;
use tlsprof_common::privilege::{self, Kept};
use tlsprof_ledger::SharedLedger;
use tlsprof_outlet::top::draw::draw;
use tlsprof_outlet::top::draw::theme::Theme;
use tlsprof_outlet::top::key::pressed;
use tlsprof_outlet::top::screen::{Action, Drawn, Page, Screen};
use tlsprof_outlet::top::terminal::{self, Terminal};
use tlsprof_outlet::top::view::View;
use tlsprof_outlet::watch::{Bounds, SharedWatch, Watch};

/// How long the screen waits for a key before it looks for new figures.
const GLANCE: Duration = Duration::from_millis(50);
/// How often services are judged.
const FINDINGS_PERIOD: Duration = Duration::from_secs(5);
/// Columns of history: as many as the widest terminal shows.
const POINTS: usize = 300;

pub(super) fn run(
    options: &TopOptions,
    config: &Config,
    logged: &log::Kept,
    notices: Notices,
) -> Result<ExitCode> {
    terminal::check()?;
    let stop = stop_flag()?;
    signal_hook::flag::register(signal_hook::consts::SIGHUP, stop.clone())
        .context("cannot handle signals")?;
    // Before there are other threads, which have what their parent has.
    privilege::keep_only(STARTING).context(PRIVILEGES)?;
    notices.say("attaching...");
    let session_options = session_options(config, options.target.selection(), Purpose::Watch);
    let ledger = new_ledger(config);
    let session = Session::start(&session_options, SharedLedger::clone(&ledger))?;
    privilege::keep_only(Kept::default()).context(PRIVILEGES)?;
    notices.say(format_args!("profiling {}", session.coverage()));
    let bounds = Bounds {
        point: options.interval,
        points: POINTS,
        ..Bounds::default()
    };
    let shared = Shared {
        watch: SharedWatch::new(Watch::new(ledger, about()?, bounds).into()),
        readings: AtomicU64::new(0),
    };
    let watch = SharedWatch::clone(&shared.watch);
    let monitor = Monitor::new(session, watch, config, FINDINGS_PERIOD);
    let ended = thread::scope(|scope| {
        let profile = scope.spawn(|| profile(monitor, &shared.readings, &stop));
        let shown = Top::new(&shared, options.interval).show(&stop);
        stop.store(true, Ordering::Relaxed);
        // The terminal is the shell's again. With other profilers about this takes seconds.
        notices.say("releasing the probes...");
        let profiled = profile.join();
        shown.and(profiled.unwrap_or_else(|_| Err(anyhow!("profiling failed"))))
    });
    logged.print();
    ended.map(|()| ExitCode::SUCCESS)
}

/// What both threads have.
struct Shared {
    watch: SharedWatch,
    /// Raised when there are other figures.
    readings: AtomicU64,
}

/// Profiles until it is stopped; if it breaks down, it stops the screen as well.
fn profile(mut monitor: Monitor, readings: &AtomicU64, stop: &AtomicBool) -> Result<()> {
    let _stop = Stop(stop);
    while !stop.load(Ordering::Relaxed) {
        if monitor.turn(|_, _| {})? {
            readings.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Raises the flag when it is dropped, by a panic too.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The screen.
struct Top<'a> {
    shared: &'a Shared,
    interval: Duration,
    /// The watch as it was when the user paused.
    frozen: Option<Watch>,
    screen: Screen,
    drawn: Drawn,
}

impl<'a> Top<'a> {
    fn new(shared: &'a Shared, interval: Duration) -> Self {
        Self {
            shared,
            interval,
            frozen: None,
            screen: Screen::default(),
            drawn: Drawn::default(),
        }
    }

    /// Draws and takes keys until the user, or a signal, ends it.
    fn show(&mut self, stop: &AtomicBool) -> Result<()> {
        const GONE: &str = "the terminal has gone";
        let mut terminal = Terminal::take()?;
        let mut seen = None;
        while !stop.load(Ordering::Relaxed) {
            let readings = Some(self.shared.readings.load(Ordering::Relaxed));
            if seen != readings {
                seen = readings;
                self.draw(&mut terminal).context(GONE)?;
            }
            // Of a terminal that hung up, crossterm would read nothing for ever.
            if terminal::hung_up(GLANCE) {
                break;
            }
            if event::poll(Duration::ZERO).context(GONE)? {
                if self.handle(&event::read().context(GONE)?) == Action::Quit {
                    break;
                }
                // What the next key means depends on what is on the screen.
                self.draw(&mut terminal).context(GONE)?;
            }
        }
        Ok(())
    }

    fn handle(&mut self, event: &Event) -> Action {
        let Event::Key(key) = event else {
            // The terminal has another size.
            return Action::Draw;
        };
        let Some(key) = pressed(key) else {
            return Action::Draw;
        };
        let action = self.screen.update(key, &self.drawn);
        match (self.screen.paused, &self.frozen) {
            (true, None) => self.frozen = Some(locked(&self.shared.watch).frozen()),
            (false, Some(_)) => self.frozen = None,
            _ => {}
        }
        action
    }

    fn draw(&mut self, terminal: &mut Terminal) -> io::Result<()> {
        let opened = match &self.screen.page {
            Page::Services => None,
            Page::Service(name) => Some(name.as_str()),
        };
        let view = match &self.frozen {
            Some(frozen) => View::of(frozen, self.interval, opened),
            None => View::of(&locked(&self.shared.watch), self.interval, opened),
        };
        let (screen, drawn) = (&self.screen, &mut self.drawn);
        let theme = Theme::of_environment();
        terminal.draw(|frame| *drawn = draw(frame, &view, screen, theme))
    }
}
