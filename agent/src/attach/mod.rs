//! Chooses and places probes.

pub mod openssl;
pub mod placement;
pub mod plan;
pub mod spec;
pub mod state_machine;
