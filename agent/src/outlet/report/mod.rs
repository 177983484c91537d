//! The report of one profile: text for people, JSON for programs.

mod build;
mod connections;
mod findings;
pub mod json;
pub mod model;
#[cfg(test)]
pub(crate) mod sample;
pub mod text;
mod tls;

pub use build::{Facts, ServiceFacts, build};
