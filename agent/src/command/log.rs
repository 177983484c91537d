//! The log: to standard error, or kept while the terminal shows something else.

use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::Level;

/// Bytes that are kept; later ones are dropped.
const MOST: usize = 64 * 1024;

/// What was logged while standard error was the terminal that a screen is drawn on. It is
/// printed on request, or dropped.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    /// Prints what was logged.
    pub(super) fn print(&self) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody is left to whom a failure could be reported.
        let _ = io::stderr().write_all(&kept);
        kept.clear();
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MOST.saturating_sub(kept.len());
        kept.extend(bytes.iter().take(room));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Begins logging. `drawn_over`: standard error, where it is a terminal, is drawn on.
pub(super) fn init(level: Level, drawn_over: bool) -> Kept {
    let kept = Kept::default();
    let terminal = io::stderr().is_terminal();
    let log = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(terminal && std::env::var_os("NO_COLOR").is_none())
        .with_target(false);
    if terminal && drawn_over {
        let writer = kept.clone();
        log.with_writer(move || writer.clone()).init();
    } else {
        log.with_writer(io::stderr).init();
    }
    kept
}
