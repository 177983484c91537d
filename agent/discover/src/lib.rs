//! Which services run on this host, and where their TLS libraries are.
//!
//! All text read here is foreign: a process may call itself anything, and name
//! its files so. Parsing is done by pure functions over bytes that skip what
//! they do not understand; [`ProcRoot`] is the thin layer that reads. The
//! parsers of the procfs crate are not used on such text: they reject a whole
//! file for one name that is not UTF-8, and panic at a mapped file `/SYSV`.

use std::io;
use std::path::PathBuf;

pub mod container;
pub mod elf;
pub mod host;
pub mod host_time;
pub mod image;
pub mod interrupts;
pub mod library;
mod listen_overflows;
pub mod memory;
pub mod perf_map;
pub mod ports;
pub mod proc_root;
pub mod process;
pub mod reach;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod selection;
pub mod service;
pub mod table;
mod time_wait;

pub use proc_root::ProcRoot;

/// Why something about the host could not be found out.
///
/// A process that ends while it is being read is no error: functions return
/// `Ok(None)` then.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is there, but may not or cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel wrote something that this program does not understand.
    #[error("cannot understand {}: {text:?}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Its text, or the beginning of it.
        text: String,
    },
}

impl Error {
    fn malformed(path: PathBuf, bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).chars().take(80).collect();
        Self::Malformed { path, text }
    }

    /// True when the kernel forbids it: for another user's process, or for one
    /// that a security module or a pid namespace protects.
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }
}
