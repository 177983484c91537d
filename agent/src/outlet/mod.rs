//! Where the ledger is shown.

pub mod compare;
pub mod doctor;
pub mod flamegraph;
mod html;
pub mod http;
mod json;
pub mod list;
pub mod live;
pub mod load_test;
pub mod metrics;
pub mod report;
pub mod terminal;
pub mod top;
pub mod watch;
