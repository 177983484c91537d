//! A comparison: a document for people, JSON for programs.

pub mod json;
mod sentences;
mod service;
#[cfg(test)]
mod tests;
mod words;

use crate::document::{Block, Cell, Document, Table, Tone, html, text as plain};
use crate::terminal::Style;
use tlsprof_common::units::{counted, time};
use tlsprof_report::compare::model::{Comparison, Group};

/// The comparison as text, with a newline at the end.
pub fn text(comparison: &Comparison, style: Style) -> String {
    plain::render(&document(comparison), style, false)
}

/// The comparison as a page.
pub fn html(comparison: &Comparison) -> String {
    html::render(&document(comparison))
}

fn document(comparison: &Comparison) -> Document {
    let groups = comparison.groups.iter();
    let labels: Vec<&str> = groups.map(|one| one.label.as_str()).collect();
    let labels = labels.join(", ");
    let services = comparison.services.iter();
    let headlines = services
        .clone()
        .map(|one| sentences::headline(comparison, one));
    let mut head: Vec<Block> = headlines.map(Block::Lead).collect();
    if !comparison.warnings.is_empty() {
        let title = "Caution:".to_owned();
        head.push(Block::Alarm(Tone::Look, title, comparison.warnings.clone()));
    }
    let sections = services.enumerate();
    let sections = sections.map(|(at, one)| service::section(comparison, at, one));
    let mut notes = sentences::left_out(&comparison.left_out);
    notes.extend(sentences::method(comparison));
    notes.push(format!("Made by tlsprof {}.", comparison.tlsprof_version));
    Document {
        title: format!("tlsprof: {labels}"),
        about: format!("comparison of {labels}"),
        head,
        main: [reports(comparison).into()]
            .into_iter()
            .chain(sections)
            .collect(),
        foot: Block::remarks(notes).collect(),
    }
}

fn reports(comparison: &Comparison) -> Table {
    let mut table = Table::new("Compared reports")
        .words("report")
        .numbers(["runs", "time"])
        .words("host")
        .words("system")
        .optional()
        .words("file");
    for (at, group) in comparison.groups.iter().enumerate() {
        let base = if at == 0 { " (first)" } else { "" };
        let seconds = group.runs.iter().map(|run| run.duration_seconds).sum();
        let (host, system) = host(group);
        let files: Vec<&str> = group.runs.iter().map(|run| run.file.as_str()).collect();
        let cells = [
            format!("{}{base}", group.label),
            group.runs.len().to_string(),
            time(seconds),
            host,
            system,
            files.join(", "),
        ];
        table.row(cells.map(Cell::from));
    }
    table
}

/// The host of a group, and what it is.
fn host(group: &Group) -> (String, String) {
    group.runs.first().map_or_else(Default::default, |run| {
        let cpus = counted(u64::from(run.cpus), "CPU", "CPUs");
        (
            run.hostname.clone(),
            format!("Linux {}, {cpus}", run.kernel),
        )
    })
}
