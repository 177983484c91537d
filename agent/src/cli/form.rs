//! Forms of an output.

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
pub(super) struct RawForm<F: ValueEnum + Default + Send + Sync + 'static> {
    /// Output format
    #[arg(long, value_enum, default_value_t, help_heading = OUTPUT)]
    pub(super) format: F,
}
