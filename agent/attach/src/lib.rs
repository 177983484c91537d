//! Chooses and places probes.

pub mod danger;
pub mod error;
pub mod placement;
pub mod plan;
pub mod registry;
pub mod state_machine;
#[cfg(test)]
mod tests;
