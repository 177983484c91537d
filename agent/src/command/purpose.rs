//! What the user wants of a session.

use std::time::Duration;

/// What a session is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// To run until it is stopped, within the overhead budget.
    Watch,
    /// A report on this time; None for as long as a command runs.
    Report(Option<Duration>),
}
