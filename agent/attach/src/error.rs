//! Why an image cannot be examined.

use tlsprof_discover::elf::ElfError;
use tlsprof_discover::image::OpenError;

/// Why an image could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// Its file could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// No more descriptors.
    #[error("cannot duplicate a file descriptor")]
    Duplicate(#[source] std::io::Error),
    /// Its file is not a sound ELF file.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// A defect of this program.
    #[error("its examination failed unexpectedly")]
    Panicked,
}
