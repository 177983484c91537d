//! The kernel side: the only module that uses aya and its system calls. With
//! `calibrate/libcrypto.rs` the only one that uses `unsafe`.

mod accept;
mod batch;
mod btf;
mod clocks;
pub mod connections;
mod cookies;
pub mod cost;
pub mod hits;
mod hook_cost;
mod least_time;
pub mod limits;
pub mod load;
pub mod lockdown;
pub mod mappings;
mod object;
pub mod probes;
pub mod record;
pub mod samples;
mod skipped;
pub mod sock_diag;
pub mod socket_calls;
mod sweep;
mod table;
pub mod types;
