//! `tlsprof completions` and `tlsprof man`.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};
use clap_complete::Shell;

use super::print::print;
use crate::cli::{definition, documents};
use tlsprof_common::{did_you_mean, near};

pub(super) fn completions(shell: Shell) -> Result<ExitCode> {
    let mut script = Vec::new();
    documents::completions(shell, &mut script);
    print(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// The page of the command with these words: for reading on a terminal, else its source.
pub(super) fn manual(words: &[String]) -> Result<ExitCode> {
    let Some(page) = documents::manual(words) else {
        let definition = definition();
        let names = definition.get_subcommands().map(clap::Command::get_name);
        let asked = words.join(" ");
        let near = did_you_mean(&near(&asked, names));
        bail!("no command `{asked}`{near}; `tlsprof --help` lists all");
    };
    if !(io::stdout().is_terminal() && read(&page).unwrap_or(false)) {
        print(&page)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Lets man(1) show a page; whether it could.
fn read(page: &[u8]) -> Result<bool> {
    let mut man = Command::new("man")
        .args(["--local-file", "-"])
        .stdin(Stdio::piped())
        .spawn()?;
    let mut pipe = man.stdin.take().context("no pipe")?;
    pipe.write_all(page)?;
    drop(pipe);
    Ok(man.wait()?.success())
}
