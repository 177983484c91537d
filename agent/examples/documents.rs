//! Writes what packages have besides the program: man pages and shell completions, both from the
//! definition of the command line. Not part of the program, so that it needs not carry them.
//!
//!     cargo run --example documents -- FOLDER
//!
//! They go to FOLDER/man and FOLDER/completions.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::ValueEnum as _;
use clap_complete::Shell;

fn main() -> Result<()> {
    let folder = std::env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .context("usage: documents FOLDER")?;
    write_man_pages(&folder.join("man"))?;
    write_completions(&folder.join("completions"))
}

/// tlsprof(1) and a page for each command that is not hidden.
fn write_man_pages(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let definition = tlsprof::cli::definition().disable_help_subcommand(true);
    clap_mangen::generate_to(definition, folder)?;
    Ok(())
}

/// For all shells that clap knows.
fn write_completions(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for shell in Shell::value_variants() {
        let mut definition = tlsprof::cli::definition();
        clap_complete::generate_to(*shell, &mut definition, "tlsprof", folder)?;
    }
    Ok(())
}
