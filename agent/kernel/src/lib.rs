//! The kernel side: the only module that uses aya and its system calls. With
//! `calibrate/libcrypto.rs` the only one that uses `unsafe`.

mod batch;
mod btf;
mod clocks;
pub mod connections;
pub mod cookies;
pub mod cost;
pub mod error;
pub mod hits;
mod hook;
mod hook_cost;
mod least_time;
pub mod limits;
pub mod load;
pub mod loaded;
pub mod lockdown;
pub mod mappings;
pub mod object;
pub mod place;
mod plain;
pub mod probes;
pub mod record;
pub mod samples;
mod skipped;
pub mod sock_diag;
pub mod socket_calls;
mod sweep;
mod table;
pub mod types;
