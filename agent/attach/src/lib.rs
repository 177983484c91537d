//! Chooses and places probes.

pub mod danger;
pub mod error;
pub mod openssl;
pub mod placement;
pub mod plan;
pub mod registry;
pub mod spec;
pub mod state_machine;
#[cfg(test)]
mod tests;
