//! `tlsprof doctor`: what works on this host, what does not, and why.

use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use super::setup::sampling;
use crate::cli::Format;
use crate::config::Config;
use crate::session::diagnosis;
use tlsprof_kernel::load::Options;
use tlsprof_outlet::doctor::{self, Diagnosis};
use tlsprof_outlet::terminal::Style;

pub(super) fn run(format: Format, config: &Config) -> Result<ExitCode> {
    let diagnosis = diagnose(config);
    let stdout = io::stdout();
    let text = match format {
        Format::Text => doctor::text(&diagnosis, Style::of(&stdout)),
        Format::Json => doctor::json(&diagnosis).context("cannot write the diagnosis as JSON")?,
    };
    stdout
        .lock()
        .write_all(text.as_bytes())
        .context("cannot write to standard output")?;
    Ok(ExitCode::SUCCESS)
}

/// Tries each capability on this host.
pub(super) fn diagnose(config: &Config) -> Diagnosis {
    diagnosis::diagnose(&Options {
        btf: config.profile.btf.clone(),
        mode: None,
        handshakes_in_progress: config.limits.handshakes_in_progress,
        connections: config.profile.connections,
        sampling: sampling(config),
    })
}
