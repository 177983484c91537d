//! `tlsprof compare`: what changed between reports.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use super::notices::Notices;
use super::output::{Output, write};
use crate::cli::{CompareOptions, LabelledFile, ReportFormat};
use tlsprof_common::units::printable;
use tlsprof_outlet::compare::{self as outlet, json};
use tlsprof_report::compare::model::Comparison;
use tlsprof_report::compare::{LabelledRun, LabelledRuns, compare, input};

pub(super) fn run(options: &CompareOptions, notices: Notices) -> Result<ExitCode> {
    let labels = labels(&options.reports);
    let mut groups: Vec<LabelledRuns> = Vec::new();
    let mut seen = Seen::default();
    for (one, label) in options.reports.iter().zip(labels) {
        if !seen.is_worth_reading(&one.file, &label) {
            continue;
        }
        let run = LabelledRun {
            file: printable(&one.file.display().to_string()).into_owned(),
            report: input::read(&one.file)?,
        };
        match groups.iter_mut().find(|group| group.label == label) {
            Some(group) => group.runs.push(run),
            None => groups.push(LabelledRuns {
                label,
                runs: vec![run],
            }),
        }
    }
    if let [only] = groups.as_slice() {
        bail!("nothing to compare: all reports are called {}", only.label);
    }
    let comparison = compare(&groups, &options.services, options.spread);
    if comparison.services.is_empty() {
        bail!("{}", nothing_in_common(&groups));
    }
    // After the reports were read: a file may be one of them.
    let output = options.output.output.as_deref();
    let output = output
        .map(|path| Output::to(path, "the comparison"))
        .transpose()?;
    write("the comparison", output, notices, |style| {
        match options.output.format() {
            ReportFormat::Text => Ok(outlet::text(&comparison, style)),
            ReportFormat::Json => json::render(&comparison),
            ReportFormat::Html => Ok(outlet::html(&comparison)),
        }
        .context("cannot write the comparison as JSON")
    })?;
    Ok(status(options.fail_if_worse, &comparison))
}

fn status(fail_if_worse: bool, comparison: &Comparison) -> ExitCode {
    if fail_if_worse && comparison.has_worse() {
        eprintln!("tlsprof: at least one figure is worse");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Files that were given already: a file twice is no repeat of a run.
#[derive(Default)]
struct Seen {
    files: BTreeMap<(u64, u64), BTreeSet<String>>,
}

impl Seen {
    fn is_worth_reading(&mut self, file: &Path, label: &str) -> bool {
        // What cannot be looked at cannot be read either, and is reported then.
        let Ok(facts) = std::fs::metadata(file).map(|facts| (facts.dev(), facts.ino())) else {
            return true;
        };
        let labels = self.files.entry(facts).or_default();
        let name = file.display().to_string();
        let name = printable(&name);
        if labels.contains(label) {
            eprintln!("tlsprof: {name} is given twice as {label}; it counts once");
            return false;
        }
        if !labels.is_empty() {
            eprintln!("tlsprof: {name} is given twice; it is compared with itself");
        }
        labels.insert(label.to_owned());
        true
    }
}

/// What reports are called: as the user says, else by the file's name, and by its whole path
/// where another has the same name.
fn labels(reports: &[LabelledFile]) -> Vec<String> {
    let given: BTreeSet<&str> = reports
        .iter()
        .filter_map(|one| one.label.as_deref())
        .collect();
    let stem = |file: &Path| {
        let name = file
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        name.unwrap_or_else(|| file.display().to_string())
    };
    let mut files: BTreeMap<String, BTreeSet<&PathBuf>> = BTreeMap::new();
    for one in reports.iter().filter(|one| one.label.is_none()) {
        files.entry(stem(&one.file)).or_default().insert(&one.file);
    }
    let mut twice: BTreeMap<&PathBuf, usize> = BTreeMap::new();
    let mut label = |one| {
        let LabelledFile { label, file }: &LabelledFile = one;
        if let Some(label) = label {
            return printable(label).into_owned();
        }
        let times = twice.entry(file).or_default();
        *times += 1;
        let short = stem(file);
        let alone = files.get(&short).is_some_and(|files| files.len() == 1);
        let name = if alone && !given.contains(short.as_str()) {
            short
        } else {
            file.display().to_string()
        };
        // Only a name that the user gives makes repeats.
        let name = if *times > 1 {
            format!("{name} ({times})")
        } else {
            name
        };
        printable(&name).into_owned()
    };
    reports.iter().map(&mut label).collect()
}

fn nothing_in_common(groups: &[LabelledRuns]) -> String {
    let of = |group: &LabelledRuns| {
        let services = group.runs.iter().flat_map(|run| &run.report.services);
        let mut names: Vec<_> = services.map(|one| printable(&one.service_name)).collect();
        names.sort_unstable();
        names.dedup();
        let more = names.len().saturating_sub(5);
        names.truncate(5);
        let mut listed = if names.is_empty() {
            "no service".to_owned()
        } else {
            names.join(", ")
        };
        if more > 0 {
            listed.push_str(&format!(" and {more} more"));
        }
        format!("{} has {listed}", group.label)
    };
    let differences: Vec<String> = groups.iter().map(of).collect();
    format!(
        "the reports have no active service in common: {}. Pair services that have \
         different names with --service NAME_IN_FIRST=NAME_IN_OTHERS",
        differences.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels_of(reports: &[(&str, &str)]) -> Vec<String> {
        let reports: Vec<_> = reports
            .iter()
            .map(|(label, file)| LabelledFile {
                label: (!label.is_empty()).then(|| (*label).to_owned()),
                file: file.into(),
            })
            .collect();
        labels(&reports)
    }

    #[test]
    fn reports_are_called_by_their_files() {
        assert_eq!(labels_of(&[("", "x/a.json"), ("", "b.json")]), ["a", "b"]);
        assert_eq!(
            labels_of(&[("old", "a.json"), ("", "b.json")]),
            ["old", "b"]
        );
    }

    #[test]
    fn only_names_that_the_user_gives_make_repeats() {
        assert_eq!(
            labels_of(&[("", "1/report.json"), ("", "2/report.json")]),
            ["1/report.json", "2/report.json"]
        );
        assert_eq!(
            labels_of(&[("b", "a.json"), ("", "b.json")]),
            ["b", "b.json"]
        );
        assert_eq!(labels_of(&[("", "a.json"), ("", "a.json")]), ["a", "a (2)"]);
        assert_eq!(labels_of(&[("x", "a.json"), ("x", "b.json")]), ["x", "x"]);
    }

    #[test]
    fn a_label_cannot_drive_the_terminal() {
        assert_eq!(labels_of(&[("\x1b[2J", "a.json")]), ["\u{fffd}[2J"]);
    }
}
