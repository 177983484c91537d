//! `tlsprof doctor`: whether this host can be profiled, what works on it, and why the rest does not.

use std::io;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use super::print::print;
use super::purpose::Purpose;
use super::setup::sampling;
use crate::cli::{DoctorOptions, Format};
use crate::config::Config;
use crate::session::diagnosis;
use tlsprof_kernel::load::Options;
use tlsprof_outlet::doctor::{self, Diagnosis};
use tlsprof_outlet::terminal::Style;

pub(super) fn run(options: DoctorOptions, config: &Config) -> Result<ExitCode> {
    let diagnosis = diagnose(config);
    let text = match options.form.format {
        Format::Text => doctor::text(&diagnosis, options.verbose, Style::of(&io::stdout())),
        Format::Json => doctor::json(&diagnosis).context("cannot write the diagnosis as JSON")?,
    };
    print(text.as_bytes())?;
    Ok(if diagnosis.ready {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Tries each capability on this host.
pub(super) fn diagnose(config: &Config) -> Diagnosis {
    diagnosis::diagnose(&Options {
        btf: config.profile.btf.clone(),
        mode: None,
        handshakes_in_progress: config.limits.handshakes_in_progress,
        connections: config.profile.connections,
        sampling: sampling(config, Purpose::Watch),
    })
}
