//! Forms of an output.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

/// Form of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[expect(
    missing_docs,
    reason = "the names say it, and clap would print docs in --help"
)]
pub enum Format {
    #[default]
    Text,
    Json,
}

/// Form of a report or a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[expect(
    missing_docs,
    reason = "the names say it, and clap would print docs in --help"
)]
pub enum ReportFormat {
    #[default]
    Text,
    Json,
    Html,
}

impl ReportFormat {
    /// The form that the name of a file stands for, by its extension; text for any other.
    fn of_file(name: &Path) -> Self {
        match name.extension().and_then(OsStr::to_str) {
            Some("html" | "htm") => Self::Html,
            Some("json") => Self::Json,
            _ => Self::Text,
        }
    }
}

/// What is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[expect(
    missing_docs,
    reason = "the names say it, and clap would print docs in --help"
)]
pub enum LogLevel {
    Error,
    #[default]
    Warn,
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    /// The level for `tracing`.
    pub const fn level(self) -> tracing::Level {
        match self {
            Self::Error => tracing::Level::ERROR,
            Self::Warn => tracing::Level::WARN,
            Self::Info => tracing::Level::INFO,
            Self::Debug => tracing::Level::DEBUG,
            Self::Trace => tracing::Level::TRACE,
        }
    }
}

/// Heading of the options on what is written, and where.
pub(super) const OUTPUT: &str = "Output";

/// How the result is written.
#[derive(Debug, Args)]
pub(super) struct RawForm {
    /// Output format
    #[arg(long, value_enum, default_value_t, help_heading = OUTPUT)]
    pub(super) format: Format,
}

/// How a report or a comparison is written, and where.
#[derive(Debug, Args)]
pub(super) struct RawOutput {
    /// Output format [default: that of FILE by its name (.html, .json), else text]
    #[arg(long, value_enum, help_heading = OUTPUT)]
    format: Option<ReportFormat>,
    /// Write to this file
    #[arg(long, short, value_name = "FILE", help_heading = OUTPUT)]
    pub(super) output: Option<PathBuf>,
}

impl RawOutput {
    /// The form that is asked for, by an option or by the name of the file.
    pub(super) fn format(&self) -> ReportFormat {
        let named = self.output.as_deref().map(ReportFormat::of_file);
        self.format.or(named).unwrap_or_default()
    }
}
