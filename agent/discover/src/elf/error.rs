//! Why an image cannot be used.

use std::io;

/// Why an ELF image could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ElfError {
    /// The file could not be read.
    #[error("cannot read {what} at offset {offset:#x}")]
    Read {
        /// What was being read.
        what: &'static str,
        /// Where it is in the file.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The magic number is missing.
    #[error("not an ELF file")]
    NotElf,
    /// An ELF file, but not a 64-bit little-endian executable or library.
    #[error("not a 64-bit little-endian ELF executable or library")]
    Unsupported,
    /// A table lies beyond the end of the file.
    #[error("{what} (offset {offset:#x}, {size} bytes) lies beyond the end of the file")]
    Truncated {
        /// The table.
        what: &'static str,
        /// Where it should be in the file.
        offset: u64,
        /// Its size in bytes.
        size: u64,
    },
    /// A table is larger than any real one.
    #[error("{what} has {size} bytes or entries, the limit is {limit}")]
    TooLarge {
        /// The table.
        what: &'static str,
        /// Its size.
        size: u64,
        /// The largest accepted.
        limit: u64,
    },
    /// An address is in no segment that the file fills.
    #[error("{what} at address {address:#x} is in no loaded segment")]
    Unmapped {
        /// What was looked for.
        what: &'static str,
        /// Virtual address as linked.
        address: u64,
    },
    /// A field contradicts the format.
    #[error("malformed {0}")]
    Malformed(&'static str),
}
