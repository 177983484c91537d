//! What every layer shares: processes, handshakes and connections as plain types, the contract
//! with the BPF programs, what the program may do, and how errors and numbers are worded.

pub mod aarch64;
pub mod causes;
mod config_error;
mod connection;
pub mod contract;
pub mod frame;
#[cfg(feature = "golden")]
pub mod golden;
mod handshake;
mod image;
mod interrupts;
mod labelled;
mod listener;
mod loss;
mod near;
pub mod privilege;
mod process;
pub mod units;
mod wait;

pub use config_error::ConfigError;
pub use connection::{
    Carries, Closer, Connection, ConnectionId, Opening, Owner, Remote, TurnEstimate, Whole,
};
pub use handshake::{Outcome, Reason, Resumption, Role, Source, Step, Steps};
pub use image::{Device, ImageId};
pub use interrupts::InterruptTime;
pub use listener::Listener;
pub use loss::{Loss, Severity};
pub use near::{did_you_mean, near};
pub use process::{LifetimeCpu, Pid, ProcessEvent};
pub use wait::{WaitReason, Waits};
