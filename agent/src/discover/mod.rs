//! Which services run on this host, and where their TLS libraries are.

pub mod elf;
pub mod image;
pub mod library;
pub mod process;
pub mod service;
