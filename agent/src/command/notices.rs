//! What the program says of its progress.

use std::fmt::Display;

/// Lines on standard error that are neither errors nor warnings; `--quiet` leaves them out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notices {
    pub(super) quiet: bool,
}

impl Notices {
    /// Says it, if it is wanted.
    pub(super) fn say(self, text: impl Display) {
        if !self.quiet {
            eprintln!("tlsprof: {text}");
        }
    }
}
