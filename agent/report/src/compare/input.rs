//! Reading reports from files that anybody may have written.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use crate::model::{Report, SCHEMA_VERSION};
use tlsprof_common::units::printable;

/// Larger files are no reports: those with a thousand services have a hundredth of it.
const LARGEST: u64 = 64 << 20;

/// Why a file is not compared.
#[derive(Debug, Error)]
#[error("{}: {problem}", printable(&path.display().to_string()))]
pub struct InputError {
    path: PathBuf,
    problem: Problem,
}

#[derive(Debug, Error)]
enum Problem {
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
    #[error("is a directory, not a report (`tlsprof report --format json --output FILE`)")]
    Directory,
    #[error("is larger than 64 MiB, so it is not a report")]
    TooLarge,
    #[error("is empty; did the report end early?")]
    Empty,
    #[error("is truncated at line {line}, column {column}. Copy or create the report again")]
    Truncated { line: usize, column: usize },
    #[error("is not JSON ({0}); write reports to compare with `tlsprof report --format json`")]
    NotJson(String),
    #[error("is JSON, but not a report of `tlsprof report --format json`: {0}")]
    NotAReport(String),
    #[error(
        "was written by a newer tlsprof ({by}): its schema is version {found}, and this tlsprof \
         reads version {SCHEMA_VERSION}. Update tlsprof"
    )]
    Newer { by: String, found: u64 },
    #[error(
        "has schema version {found}, and this tlsprof reads version {SCHEMA_VERSION}. Create the \
         report again"
    )]
    Older { found: u64 },
}

/// What every version of a report has.
#[derive(Deserialize)]
struct Head {
    schema_version: Option<u64>,
    tlsprof_version: Option<String>,
}

/// Reads a report.
///
/// # Errors
/// When the file cannot be read, is not a whole report, or one of another schema.
pub fn read(path: &Path) -> Result<Report, InputError> {
    let content = content(path).and_then(|content| parse(&content));
    content.map_err(|problem| InputError {
        path: path.to_owned(),
        problem,
    })
}

fn content(path: &Path) -> Result<Vec<u8>, Problem> {
    let file = File::open(path).map_err(Problem::Unreadable)?;
    if file.metadata().map_err(Problem::Unreadable)?.is_dir() {
        return Err(Problem::Directory);
    }
    let mut content = Vec::new();
    // Devices and pipes have no size: what is read is bounded, not what is told.
    file.take(LARGEST + 1)
        .read_to_end(&mut content)
        .map_err(Problem::Unreadable)?;
    if content.len() as u64 > LARGEST {
        return Err(Problem::TooLarge);
    }
    Ok(content)
}

fn parse(content: &[u8]) -> Result<Report, Problem> {
    if content.iter().all(u8::is_ascii_whitespace) {
        return Err(Problem::Empty);
    }
    // Another version may have other fields: the version is looked at before them.
    let head: Head = serde_json::from_slice(content).map_err(|error| problem(&error))?;
    let Some(found) = head.schema_version else {
        return Err(Problem::NotAReport("it has no schema_version".to_owned()));
    };
    match found.cmp(&u64::from(SCHEMA_VERSION)) {
        std::cmp::Ordering::Less => return Err(Problem::Older { found }),
        std::cmp::Ordering::Greater => {
            let by = head.tlsprof_version.unwrap_or_else(|| "unknown".to_owned());
            let by = printable(&by).into_owned();
            return Err(Problem::Newer { by, found });
        }
        std::cmp::Ordering::Equal => {}
    }
    serde_json::from_slice(content).map_err(|error| problem(&error))
}

fn problem(error: &serde_json::Error) -> Problem {
    use serde_json::error::Category;
    let (line, column) = (error.line(), error.column());
    match error.classify() {
        Category::Eof => Problem::Truncated { line, column },
        Category::Syntax | Category::Io => Problem::NotJson(said(error)),
        Category::Data => Problem::NotAReport(said(error)),
    }
}

fn said(error: &serde_json::Error) -> String {
    printable(&error.to_string()).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use proptest::prelude::*;

    use super::*;
    use crate::sample;

    fn refusal(content: &[u8]) -> String {
        parse(content).unwrap_err().to_string()
    }

    fn written() -> String {
        serde_json::to_string_pretty(&sample::report()).unwrap()
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        assert_eq!(parse(written().as_bytes()).unwrap(), sample::report());
    }

    #[test]
    fn a_report_from_before_some_fields_is_read() {
        let mut value: serde_json::Value = serde_json::from_str(&written()).unwrap();
        for cost in value["services"][0]["handshake_costs"]
            .as_array_mut()
            .unwrap()
        {
            cost["cpu"].as_object_mut().unwrap().remove("mean_error");
        }
        value.as_object_mut().unwrap().remove("findings");
        assert!(parse(value.to_string().as_bytes()).is_ok());
    }

    #[test]
    fn a_file_that_was_cut_off_tells_where() {
        let text = written();
        let cut = &text.as_bytes()[..text.len() / 2];
        let line = cut.iter().filter(|byte| **byte == b'\n').count() + 1;
        let said = refusal(cut);
        assert!(
            said.contains(&format!("line {line}")) && said.contains("truncated"),
            "{said}"
        );
    }

    #[test]
    fn what_is_no_report_is_told_apart() {
        assert!(refusal(b"").contains("empty"));
        assert!(refusal(b" \n").contains("empty"));
        assert!(refusal(b"tlsprof spends").contains("not JSON"));
        assert!(refusal(b"[1, 2]").contains("not a report"));
        assert!(refusal(b"{}").contains("no schema_version"));
        assert!(refusal(br#"{"schema_version": 1}"#).contains("missing field"));
    }

    #[test]
    fn other_schema_versions_say_who_is_to_be_updated() {
        let newer = refusal(br#"{"schema_version": 7, "tlsprof_version": "9.0\u001b[2J"}"#);
        assert!(newer.contains("newer tlsprof (9.0\u{fffd}[2J)") && newer.contains("Update"));
        assert!(refusal(br#"{"schema_version": 0}"#).contains("version 0"));
    }

    #[test]
    fn folders_and_missing_files_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let told = read(folder.path()).unwrap_err().to_string();
        assert!(told.contains("directory"), "{told}");
        let missing = folder.path().join("none.json");
        let told = read(&missing).unwrap_err().to_string();
        assert!(
            told.contains("none.json") && told.contains("No such file"),
            "{told}"
        );
    }

    #[test]
    fn what_never_ends_is_not_read_to_its_end() {
        let told = read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(told.contains("larger than 64 MiB"), "{told}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_read(content in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&content);
        }
    }
}
