//! Where the ledger is shown.

pub mod compare;
pub mod doctor;
mod document;
pub mod explain;
pub mod flamegraph;
mod html;
pub mod http;
mod json;
pub mod list;
pub mod load_test;
pub mod metrics;
pub mod report;
pub mod terminal;
pub mod top;
pub mod watch;
