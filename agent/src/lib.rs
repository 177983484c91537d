//! tlsprof: an eBPF-based TLS performance profiler for servers.
//!
//! The data goes one way, and so do the modules; a later stage never calls an
//! earlier one: [`discover`] → [`attach`] → [`kernel`] → [`evidence`] →
//! [`ledger`] → [`outlet`]. [`session`] is the only place that joins them. Beside
//! them, [`ask`] learns of the host what no probe sees, if the user wants that.

pub mod advise;
pub mod ask;
pub mod attach;
pub mod calibrate;
pub mod causes;
pub mod cli;
pub mod command;
pub mod compare;
pub mod config;
pub mod discover;
pub mod evidence;
pub mod kernel;
pub mod ledger;
pub mod outlet;
pub mod privilege;
pub mod session;
pub mod units;
