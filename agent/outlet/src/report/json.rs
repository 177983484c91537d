//! The report as JSON.

use crate::json::indented;
use tlsprof_report::model::Report;

/// The report as indented JSON, ended by a newline.
///
/// # Errors
/// When a figure has no JSON form; reports hold none such.
pub fn render(report: &Report) -> Result<String, serde_json::Error> {
    indented(report)
}

/// The JSON schema of the report: the text of `docs/report.schema.json`.
///
/// # Errors
/// As [`render`].
#[cfg(test)]
pub(crate) fn schema() -> Result<String, serde_json::Error> {
    indented(&schemars::schema_for!(Report))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use tlsprof_report::sample;

    #[test]
    fn the_documented_schema_is_current() {
        tlsprof_common::golden::check(
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/report.schema.json"),
            &schema().unwrap(),
        );
    }

    #[test]
    fn a_report_survives_the_way_to_json_and_back() {
        let report = sample::report();
        let back: Report = serde_json::from_str(&render(&report).unwrap()).unwrap();
        assert_eq!(back, report);
    }
}
