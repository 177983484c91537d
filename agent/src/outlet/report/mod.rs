//! The report of one profile: text for people, JSON for programs.

mod accept_queue;
mod build;
mod connections;
mod cpu;
mod findings;
pub mod html;
pub mod json;
pub mod model;
mod requests;
#[cfg(test)]
pub(crate) mod sample;
pub mod text;
mod tls;

pub(super) use build::service as service_model;
pub use build::{Facts, ServiceFacts, build};
pub(super) use cpu::sampling as sampling_model;
pub(super) use findings::of as findings_model;
