//! Files as they were read last.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// No configuration, certificate chain or key is longer.
const MOST_BYTES: u64 = 1024 * 1024;

/// Files as they were read last, to see whether one has changed. Times of
/// modification would not do: they are too coarse, and links swap files.
#[derive(Debug, Default)]
pub(in super::super) struct Contents(BTreeMap<PathBuf, Option<Vec<u8>>>);

impl Contents {
    /// The bytes of a file, which are remembered; that it could not be read is
    /// remembered as well.
    ///
    /// # Errors
    /// When it cannot be read, is no regular file, or longer than 1 MiB.
    pub(super) fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let bytes = read(path);
        let kept = bytes.as_ref().ok().cloned();
        self.0.insert(path.to_owned(), kept);
        bytes
    }

    /// Whether any of the files would be read differently now.
    pub(in super::super) fn have_changed(&self) -> bool {
        self.0.iter().any(|(path, kept)| read(path).ok() != *kept)
    }
}

/// A read of a pipe might wait for ever, one of a device never end.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(io::Error::other("it is longer than 1 MiB"));
    }
    Ok(bytes)
}
