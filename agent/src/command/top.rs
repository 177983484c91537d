//! `tlsprof top`: services under watch, until the user has seen enough.
//!
//! One thread profiles, the other one draws and takes keys: attaching to a process that has
//! just been started takes longer than anybody waits for a key.

use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use jiff::Timestamp;
use ratatui::crossterm::event::{self, Event};

use super::log::Kept;
use super::{TURN, new_ledger, selection, session_options, stop_flag};
use crate::advise::Thresholds;
use crate::cli::TopOptions;
use crate::config::Config;
use crate::discover::host::aes_in_hardware;
use crate::outlet::top::draw::draw;
use crate::outlet::top::draw::theme::Theme;
use crate::outlet::top::key::pressed;
use crate::outlet::top::screen::{Action, Drawn, Page, Screen};
use crate::outlet::top::terminal::{self, Terminal};
use crate::outlet::top::view::View;
use crate::outlet::watch::{About, Bounds, Watch};
use crate::session::Session;

/// How long the screen waits for a key before it looks for new figures.
const GLANCE: Duration = Duration::from_millis(50);
/// How often services are judged.
const FINDINGS_PERIOD: Duration = Duration::from_secs(5);
/// Columns of history: as many as the widest terminal shows.
const POINTS: usize = 300;

pub(super) fn run(options: &TopOptions, config: &Config, kept: &Kept) -> Result<ExitCode> {
    terminal::check()?;
    let stop = stop_flag()?;
    signal_hook::flag::register(signal_hook::consts::SIGHUP, stop.clone())
        .context("cannot handle signals")?;
    eprintln!("tlsprof: attaching...");
    let budget = Some(config.agent.budget);
    let session_options = session_options(config, selection(&options.target), budget);
    let session = Session::start(&session_options, new_ledger(config))?;
    let bounds = Bounds {
        point: options.interval,
        points: POINTS,
        ..Bounds::default()
    };
    let shared = Shared {
        watch: Mutex::new(Watch::new(about(&session), (&config.limits).into(), bounds)),
        readings: AtomicU64::new(0),
    };
    let thresholds = Thresholds::from(&config.findings);
    let ended = thread::scope(|scope| {
        let profile = scope.spawn(|| profile(session, &shared, thresholds, &stop));
        let shown = Top::new(&shared, options.interval).show(&stop);
        stop.store(true, Ordering::Relaxed);
        // The terminal is the shell's again. With other profilers about this takes seconds.
        eprintln!("tlsprof: releasing the probes...");
        let profiled = profile.join();
        shown.and(profiled.unwrap_or_else(|_| Err(anyhow!("the profile broke down"))))
    });
    kept.print();
    ended.map(|()| ExitCode::SUCCESS)
}

fn about(session: &Session) -> About {
    About {
        run: String::new(),
        tlsprof_version: env!("CARGO_PKG_VERSION").to_owned(),
        host: session.host(),
        started_at: format!("{:.0}", Timestamp::now()),
    }
}

/// What both threads have.
struct Shared {
    watch: Mutex<Watch>,
    /// Raised when there are other figures.
    readings: AtomicU64,
}

impl Shared {
    fn watch(&self) -> MutexGuard<'_, Watch> {
        // A panic elsewhere leaves sums that are each written at once.
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Profiles until it is stopped; if it breaks down, it stops the screen as well.
fn profile(
    mut session: Session,
    shared: &Shared,
    thresholds: Thresholds,
    stop: &AtomicBool,
) -> Result<()> {
    let _stop = Stop(stop);
    let aes_in_hardware = aes_in_hardware();
    let mut read = Duration::ZERO;
    let mut judged: Option<Instant> = None;
    while !stop.load(Ordering::Relaxed) {
        session.turn(TURN, |service, evidence| {
            shared.watch().book(service, evidence);
        })?;
        let accounted = session.accounted_at();
        if accounted <= read {
            continue;
        }
        read = accounted;
        session.follow_ports();
        let (cost, losses) = (session.cost(), session.losses());
        shared.watch().read(&session.ledger(), read, cost, losses);
        if judged.is_none_or(|at| at.elapsed() >= FINDINGS_PERIOD) {
            let facts = session.recent_facts();
            let at = session.elapsed();
            shared
                .watch()
                .judge(&session.ledger(), at, facts, thresholds, aes_in_hardware);
            judged = Some(Instant::now());
        }
        shared.readings.fetch_add(1, Ordering::Relaxed);
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
            (true, None) => self.frozen = Some(self.shared.watch().clone()),
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
            None => View::of(&self.shared.watch(), self.interval, opened),
        };
        let (screen, drawn) = (&self.screen, &mut self.drawn);
        let theme = Theme::of_environment();
        terminal.draw(|frame| *drawn = draw(frame, &view, screen, theme))
    }
}
