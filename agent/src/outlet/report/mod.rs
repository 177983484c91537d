//! The report of one profile: text for people, JSON for programs.

mod accept_queue;
mod build;
mod connections;
mod cpu;
mod findings;
pub mod html;
pub mod json;
pub mod model;
#[cfg(test)]
pub(crate) mod sample;
pub mod text;
mod tls;

pub use build::{Facts, ServiceFacts, build};
