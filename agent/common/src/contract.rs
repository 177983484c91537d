//! The contract with the BPF programs, generated from `bpf/include/contract.h`.

#![allow(
    missing_docs,
    non_camel_case_types,
    clippy::all,
    clippy::pedantic,
    clippy::indexing_slicing,
    clippy::undocumented_unsafe_blocks,
    unsafe_code,
    dead_code
)]

include!(concat!(env!("OUT_DIR"), "/contract.rs"));
