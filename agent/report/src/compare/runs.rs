//! Reports to compare, by label, and how their services are paired.

use crate::model::Report;

/// A report with its file.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledRun {
    /// The file, as the user named it.
    pub file: String,
    /// What it holds.
    pub report: Report,
}

/// Reports with one label.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledRuns {
    /// The label.
    pub label: String,
    /// Its reports; at least one.
    pub runs: Vec<LabelledRun>,
}

/// A service that has other names in other reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Its name in the first reports.
    pub first: String,
    /// Its names in others, beside that; the first that is there counts.
    pub others: Vec<String>,
}

impl Pair {
    /// A service with one name.
    pub(crate) fn same(name: &str) -> Self {
        Self {
            first: name.to_owned(),
            others: Vec::new(),
        }
    }

    pub(super) fn candidates(&self) -> Vec<&str> {
        let others = self.others.iter().map(String::as_str);
        others.chain([self.first.as_str()]).collect()
    }
}
