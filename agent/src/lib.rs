//! tlsprof: an eBPF-based TLS performance profiler for servers.
//!
//! The program: its command line and configuration, and the [`session`] that joins the
//! layers. Each of them is a crate; docs/architecture.md shows what may depend on what.

pub mod calibrate;
pub mod cli;
pub mod command;
pub(crate) mod config;
pub(crate) mod session;
