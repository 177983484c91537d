//! Values of the configuration, each with a sentence on what would be right.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use tlsprof_kernel::object::UprobeMode;

pub(super) fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| {
        D::Error::custom(format!(
            "`{text}` is not an address and port, such as `127.0.0.1:9843` or `[::]:9843`"
        ))
    })
}

/// A path; empty for none.
pub(super) fn file<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<PathBuf>, D::Error> {
    let path = PathBuf::deserialize(deserializer)?;
    Ok((!path.as_os_str().is_empty()).then_some(path))
}

pub(super) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_duration(&text).map_err(D::Error::custom)
}

pub(super) fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    match f64::deserialize(deserializer)? {
        share if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err(D::Error::custom(
            "must be over 0 and at most 1; 0.01 is one percent",
        )),
    }
}

/// More would cost the targets more than the default budget allows.
const HIGHEST_FREQUENCY: u32 = 1000;

pub(super) fn frequency<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u32>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(u32),
        Word(String),
    }
    match Written::deserialize(deserializer) {
        Ok(Written::Number(number)) if number <= HIGHEST_FREQUENCY => Ok(Some(number)),
        Ok(Written::Word(word)) if word == "auto" => Ok(None),
        _ => Err(D::Error::custom(format!(
            "must be `auto`, or at most {HIGHEST_FREQUENCY}, and best a prime such as 97; 0 for no samples"
        ))),
    }
}

pub(super) fn at_least_one<'de, D, N>(deserializer: D) -> Result<N, D::Error>
where
    D: Deserializer<'de>,
    N: Deserialize<'de> + Default + PartialEq,
{
    let number = N::deserialize(deserializer)?;
    if number == N::default() {
        return Err(D::Error::custom("must be at least 1"));
    }
    Ok(number)
}

pub(super) fn uprobes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<UprobeMode>, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "auto" => Ok(None),
        "multi" => Ok(Some(UprobeMode::Multi)),
        "single" => Ok(Some(UprobeMode::Single)),
        other => Err(D::Error::unknown_variant(
            other,
            &["auto", "multi", "single"],
        )),
    }
}

/// Parses a duration such as `30s`, `2m`, `500ms` or `1h 30m`; at most a year.
///
/// # Errors
/// A sentence that says what would be right.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    let parsed = text.trim().parse::<jiff::SignedDuration>();
    let duration = parsed
        .ok()
        .and_then(|parsed| Duration::try_from(parsed).ok());
    match duration {
        Some(Duration::ZERO) => Err("must be longer than zero".to_owned()),
        Some(duration) if duration <= YEAR => Ok(duration),
        Some(_) => Err("must be at most a year".to_owned()),
        None => Err(format!(
            "`{text}` is not a duration, such as `30s`, `2m` or `500ms`"
        )),
    }
}
