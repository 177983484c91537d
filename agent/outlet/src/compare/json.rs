//! The comparison as JSON.

use crate::json::indented;
use tlsprof_report::compare::model::Comparison;

/// The comparison as indented JSON, ended by a newline.
///
/// # Errors
/// When a figure has no JSON form; comparisons hold none such.
pub fn render(comparison: &Comparison) -> Result<String, serde_json::Error> {
    indented(comparison)
}

/// The JSON schema of the comparison: the text of `docs/compare.schema.json`.
///
/// # Errors
/// As [`render`].
#[cfg(test)]
pub(crate) fn schema() -> Result<String, serde_json::Error> {
    indented(&schemars::schema_for!(Comparison))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use tlsprof_common::golden;
    use tlsprof_report::compare::sample;

    #[test]
    fn the_documented_schema_is_current() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/compare.schema.json"
        );
        golden::check(path, &schema().unwrap());
    }

    #[test]
    fn a_comparison_survives_the_way_to_json_and_back() {
        let comparison = sample::matrix();
        let back: Comparison = serde_json::from_str(&render(&comparison).unwrap()).unwrap();
        assert_eq!(back, comparison);
    }
}
