//! The terminal: taken over, and given back as it was.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use ratatui::DefaultTerminal;
use rustix::event::{PollFd, PollFlags, Timespec};

/// Why there is nothing to draw on.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    /// Input or output goes elsewhere.
    #[error("`tlsprof top` needs a terminal for input and output; use `tlsprof report` instead")]
    None,
    /// It cannot move the cursor.
    #[error("terminal type `{0}` cannot position its cursor; use `tlsprof report`, or set TERM")]
    Dumb(String),
    /// It does not do what is asked of it.
    #[error("cannot set up the terminal; use `tlsprof report` instead")]
    SetUp(#[source] io::Error),
}

/// Whether there is a terminal that can be drawn on.
///
/// # Errors
/// When there is none.
pub fn check() -> Result<(), TerminalError> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(TerminalError::None);
    }
    match std::env::var("TERM") {
        Ok(kind) if !kind.is_empty() && kind != "dumb" => Ok(()),
        kind => Err(TerminalError::Dumb(kind.unwrap_or_default())),
    }
}

/// Waits for input up to that time, or for a signal; true if the terminal has gone.
pub fn hung_up(timeout: Duration) -> bool {
    let input = io::stdin();
    let mut wanted = [PollFd::new(&input, PollFlags::IN)];
    let timeout = Timespec::try_from(timeout).ok();
    let polled = rustix::event::poll(&mut wanted, timeout.as_ref());
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    polled.is_ok() && wanted.iter().any(|one| one.revents().intersects(gone))
}

/// The terminal in raw mode and on its alternate screen, until this is dropped; a panic
/// gives it back as well, before it is told.
#[derive(Debug)]
pub struct Terminal(DefaultTerminal);

impl Terminal {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// When there is none, or it does not do what is asked of it.
    pub fn take() -> Result<Self, TerminalError> {
        check()?;
        match ratatui::try_init() {
            Ok(terminal) => Ok(Self(terminal)),
            Err(error) => {
                ratatui::restore();
                Err(TerminalError::SetUp(error))
            }
        }
    }

    /// Draws the whole screen.
    ///
    /// # Errors
    /// When the terminal has gone.
    pub fn draw(&mut self, draw: impl FnOnce(&mut ratatui::Frame<'_>)) -> io::Result<()> {
        self.0.draw(draw).map(drop)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing.
        let _ = self.0.show_cursor();
        let _ = ratatui::try_restore();
    }
}
