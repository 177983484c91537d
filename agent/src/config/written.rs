//! Values of the configuration as they are written in the file: the opposite of `values`.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serializer;
use serde::ser::Error as _;

use tlsprof_kernel::object::UprobeMode;

pub(super) fn file<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    let path = path.clone().unwrap_or_default();
    to.collect_str(&path.display())
}

pub(super) fn duration<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    let duration = jiff::SignedDuration::try_from(*duration).map_err(S::Error::custom)?;
    to.collect_str(&format_args!("{duration:#}"))
}

pub(super) fn frequency<S: Serializer>(number: &Option<u32>, to: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => to.serialize_u32(*number),
        None => to.serialize_str("auto"),
    }
}

pub(super) fn uprobes<S: Serializer>(mode: &Option<UprobeMode>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match mode {
        None => "auto",
        Some(UprobeMode::Multi) => "multi",
        Some(UprobeMode::Single) => "single",
    })
}
