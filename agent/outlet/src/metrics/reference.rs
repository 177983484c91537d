//! Writes the tables of `docs/metrics.md`, and the names against which queries of dashboards and
//! rules are checked, from the table of metrics.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use serde_json::json;

use super::families::{Row, chapters};
use tlsprof_common::golden;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
const NAMES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dashboards/metrics.json");

fn table(rows: &[Row]) -> String {
    let mut table = "| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n".to_owned();
    for row in rows {
        let labels: Vec<String> = row.labels.iter().map(|name| format!("`{name}`")).collect();
        let help = row.help.trim_end_matches('.');
        let meaning = format!("{help}. {}", row.note);
        let cells = [
            &format!("`{}`", row.name),
            &row.kind,
            &labels.join(", "),
            meaning.trim_end(),
        ];
        table.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    table
}

#[test]
fn the_tables_of_the_documentation() {
    for (chapter, rows) in chapters() {
        let begin = format!("from agent/outlet/src/metrics/families.rs: {chapter}");
        golden::check_part(PAGE, &begin, &table(&rows));
    }
}

#[test]
fn the_names_for_dashboards() {
    let rows = chapters().into_iter().flat_map(|(_, rows)| rows);
    let names = rows.map(|row| (row.name, json!({"type": row.kind, "labels": row.labels})));
    let names: BTreeMap<String, serde_json::Value> = names.collect();
    golden::check(
        NAMES,
        &(serde_json::to_string_pretty(&names).unwrap() + "\n"),
    );
}
