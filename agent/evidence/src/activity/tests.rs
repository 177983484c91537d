#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed test should stop"
)]

mod kernel;
mod rules;
mod symbols;
