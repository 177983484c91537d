//! Forms of an output.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

/// Form of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Text,
    Json,
}

/// Form of a report or a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
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

/// Heading of the options on what is written, and where.
pub(super) const OUTPUT: &str = "Output";

/// How the result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub(crate) struct Form {
    /// Output format
    #[arg(long, value_enum, default_value_t, help_heading = OUTPUT)]
    pub(crate) format: Format,
}

/// How a report or a comparison is written, and where.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct Output {
    /// Output format [default: that of FILE by its name (.html, .json), else text]
    #[arg(long, value_enum, help_heading = OUTPUT)]
    format: Option<ReportFormat>,
    /// Write to this file
    #[arg(long, short, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
}

impl Output {
    /// The form that is asked for, by an option or by the name of the file.
    pub(crate) fn format(&self) -> ReportFormat {
        let named = self.output.as_deref().map(ReportFormat::of_file);
        self.format.or(named).unwrap_or_default()
    }
}
