//! Where the ledger is shown.

pub mod report;
