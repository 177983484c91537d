//! What all JSON that is printed has in common.

use serde::Serialize;

/// Indented JSON, ended by a newline.
///
/// # Errors
/// When a part of it has no JSON form.
pub(super) fn indented(what: &impl Serialize) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(what).map(|text| text + "\n")
}
