//! `tlsprof compare` on the command line.

use std::path::PathBuf;

use clap::Args;

use super::form::{OUTPUT, Output};
use tlsprof_report::compare::Pair;

const COMPARED: &str = "What to compare";

/// The spread between runs that is assumed if nothing is said.
const SPREAD: &str = "5%";

/// A report and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledFile {
    /// The label given with it.
    pub label: Option<String>,
    /// The file.
    pub file: PathBuf,
}

/// Options of `tlsprof compare`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct CompareOptions {
    /// Two or more reports; those with the same NAME are repeats
    #[arg(value_name = "[NAME=]REPORT", num_args = 2.., required = true, value_parser = labelled)]
    pub(crate) reports: Vec<LabelledFile>,
    /// Compare only this service, named B in the other reports; repeatable
    #[arg(long = "service", value_name = "A[=B]", value_parser = pair, help_heading = COMPARED)]
    pub services: Vec<Pair>,
    /// Assumed run-to-run variation (standard deviation)
    #[arg(long = "noise", value_name = "PERCENT", default_value = SPREAD, value_parser = percent, help_heading = COMPARED)]
    pub(crate) spread: f64,
    /// How it is written, and where.
    #[command(flatten)]
    pub(crate) output: Output,
    /// Exit with status 1 if any figure is worse
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) fail_if_worse: bool,
}

/// `NAME=FILE` or `FILE`. A name has no slash: `./a=b.json` is a file.
fn labelled(text: &str) -> Result<LabelledFile, String> {
    let (label, file) = match text.split_once('=') {
        Some((label, file)) if !label.contains('/') => (Some(label.to_owned()), file),
        _ => (None, text),
    };
    if file.is_empty() || label.as_deref() == Some("") {
        return Err("write it as NAME=FILE or FILE".to_owned());
    }
    Ok(LabelledFile {
        label,
        file: file.into(),
    })
}

fn pair(text: &str) -> Result<Pair, String> {
    let (first, other) = text
        .split_once('=')
        .map_or((text, None), |(a, b)| (a, Some(b)));
    if first.is_empty() || other == Some("") {
        return Err("write it as NAME or NAME=OTHER_NAME".to_owned());
    }
    Ok(Pair {
        first: first.to_owned(),
        others: other.into_iter().map(str::to_owned).collect(),
    })
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text
        .strip_suffix('%')
        .and_then(|number| number.parse::<f64>().ok());
    match number {
        Some(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("write it as a percentage from 0% to 100%, such as 5%".to_owned()),
    }
}
