//! Writes what packages have besides the program: man pages and shell completions.
//!
//!     cargo run --example documents -- FOLDER
//!
//! They go to FOLDER/man and FOLDER/completions.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

fn main() -> Result<()> {
    let folder = std::env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .context("usage: documents FOLDER")?;
    tlsprof::cli::documents::write(&folder).context("cannot write the documents")
}
