//! Chooses and places probes.

pub mod danger;
pub mod error;
pub(crate) mod placement;
pub mod plan;
pub mod registry;
pub(crate) mod state_machine;
#[cfg(test)]
mod tests;
