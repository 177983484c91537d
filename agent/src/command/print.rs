//! Texts on standard output.

use std::io::{self, Write as _};

use anyhow::{Context as _, Result};

/// Writes to standard output. That its reader has gone, as `head` does, is no error.
pub(super) fn print(text: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}
