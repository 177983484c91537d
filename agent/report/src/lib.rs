//! The report of one profile: its data, made from the ledger. The outlets show it.

mod accept_queue;
mod build;
pub mod compare;
mod connections;
mod cpu;
mod findings;
pub mod model;
mod requests;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
mod sampled_steps;
mod target;
mod tls;

pub use build::{Facts, ServiceFacts, build, service as service_model};
pub use cpu::sampling as sampling_model;
pub use findings::of as findings_model;
pub use target::mark_target;
