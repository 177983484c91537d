//! Hellos captured from real peers, whole and in pieces. How each was made, and
//! what the client said of the result, is in the fixture's first lines.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a fixture that cannot be read is a failed test"
)]

mod fixtures;
mod hostile;
mod rules;
