//! What is wrong with the file, and where.

use std::path::Path;

use serde_saphyr::Spanned;

use tlsprof_common::ConfigError;

/// What is wrong, and where.
#[derive(Debug)]
pub(super) struct Problem {
    /// The key with its section; empty: that on the line.
    key: String,
    /// From 1. Where None, that of the key.
    line: Option<u64>,
    message: String,
}

impl Problem {
    pub(super) fn new(key: &str, line: Option<u64>, message: impl Into<String>) -> Self {
        Self {
            key: key.to_owned(),
            line,
            message: message.into(),
        }
    }

    /// A problem of that value.
    pub(super) fn of<T>(key: &str, value: &Spanned<T>, message: impl Into<String>) -> Self {
        Self::new(key, Some(value.referenced.line()), message)
    }

    /// The error that names the file at `path`, of which this is the text.
    pub(super) fn at(self, path: &Path, text: &str) -> ConfigError {
        let line = self.line.and_then(|line| usize::try_from(line).ok());
        let line = line.unwrap_or_else(|| line_of(text, &self.key)).max(1);
        let key = if self.key.is_empty() {
            key_on(text, line)
        } else {
            self.key
        };
        ConfigError::Invalid {
            path: path.to_owned(),
            line,
            key,
            message: self.message,
        }
    }
}

/// The key that a line of YAML begins with, if any.
fn key_of(line: &str) -> Option<&str> {
    let (key, _) = line.split_once(':')?;
    let key = key.trim().trim_matches(['"', '\'']);
    (!key.is_empty() && !key.starts_with(['#', '-'])).then_some(key)
}

fn is_indented(line: &str) -> bool {
    line.starts_with([' ', '\t'])
}

/// The line (from 1) of a key of the first level, or of the section of another.
fn line_of(text: &str, key: &str) -> usize {
    let section = key.split('.').next();
    let here = |line: &str| !is_indented(line) && key_of(line) == section;
    text.lines().position(here).map_or(1, |line| line + 1)
}

/// The key on a line (from 1), with its section.
fn key_on(text: &str, line: usize) -> String {
    let lines: Vec<&str> = text.lines().take(line).collect();
    let Some((here, before)) = lines.split_last() else {
        return String::new();
    };
    let key = key_of(here).unwrap_or_default();
    let mut sections = before.iter().rev().filter(|line| !is_indented(line));
    match sections.find_map(|line| key_of(line)) {
        Some(section) if is_indented(here) && key.is_empty() => section.to_owned(),
        Some(section) if is_indented(here) => format!("{section}.{key}"),
        _ => key.to_owned(),
    }
}
