//! What the kernel side reports, decoded into the words of the design.

pub mod accept_queue;
pub mod activity;
pub mod callers;
pub mod cpu;
pub mod decode;
pub mod fingerprint;
pub mod hello;
pub mod join;
mod model;
pub mod primitive;
#[cfg(any(test, feature = "sample"))]
pub mod sample;

pub use model::{Chunk, Comparison, Estimate, Evidence, Handshake};
