//! The command line, parsed into ready objects.
//!
//! Wrong usage ends the process with status 2 and a message (clap does that);
//! failures of the commands themselves are for the caller, with status 1.

mod compare;
pub mod documents;
mod examples;
mod form;
mod options;
mod report;

use std::ffi::OsString;

use clap::{CommandFactory, Parser};

pub use compare::{CompareOptions, LabelledFile};
pub(crate) use form::{Format, ReportFormat};
pub use options::{
    AgentOptions, Command, ConfigCommand, DoctorOptions, Invocation, ListOptions, TopOptions,
};
pub use report::{ReportOptions, Until};

/// Parses the arguments of this process. Prints help or the error and ends the
/// process where there is nothing to do: status 0 for help, 2 for wrong usage.
pub fn parse() -> Invocation {
    Invocation::parse()
}

/// Parses arguments, the program's name first.
///
/// # Errors
/// When the usage is wrong, and for `--help` and `--version`.
pub fn parse_from<I, T>(arguments: I) -> Result<Invocation, clap::Error>
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    Invocation::try_parse_from(arguments)
}

/// The definition of the command line, for documentation and completions.
pub(crate) fn definition() -> clap::Command {
    Invocation::command()
}

#[cfg(test)]
mod tests;
