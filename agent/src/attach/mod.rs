//! Chooses and places probes.

pub mod spec;
