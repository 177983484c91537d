//! Findings: what is wrong, and what a change would save.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::{PredictionKind, Role, Severity};

/// A conclusion on one service.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Finding {
    /// Its kind, such as `slow-key-exchange`: a stable name.
    pub id: String,
    /// The service.
    pub service_name: String,
    /// `server` or `client`: the service's role in what was seen.
    pub role: Role,
    /// `high`, `medium`, `low` or `info`.
    pub severity: Severity,
    /// What is wrong.
    pub title: String,
    /// `handshakes`, `connections` or `samples` (of CPUs): what the finding rests on.
    pub observed: String,
    /// How many of them.
    pub observed_count: u64,
    /// In what time, in seconds.
    pub observed_seconds: f64,
    /// What was seen, in sentences.
    pub evidence: Vec<String>,
    /// The figures of it; names end in their unit.
    pub figures: BTreeMap<String, f64>,
    /// What a change would save.
    pub prediction: Prediction,
    /// What to change.
    pub remedy: Remedy,
    /// What the change may break.
    pub risk: String,
    /// The page on it in the documentation.
    pub page: String,
}

/// What a change would save.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Prediction {
    /// `saving`; `at_most`: the figures are an upper bound, and what is saved lies between
    /// nothing and them; `latency`: time that handshakes wait, no
    /// CPU; `unknown`: no cost is known to predict it from; `none`: nothing that can
    /// be put in CPU time.
    pub kind: PredictionKind,
    /// CPU time that the change would have saved during the profile, in seconds.
    pub cpu_seconds: Option<Range>,
    /// The same as a share (0 to 1) of the service's CPU time.
    pub cpu_ratio: Option<Range>,
    /// How many times the work the same CPU could do after the change.
    pub capacity_ratio: Option<Range>,
    /// Time that each handshake waits, in seconds.
    pub latency_seconds: Option<Range>,
    /// Where the cost of the alternative was measured: `this_service`, `this_host` or
    /// `calibration` (of the same library); null without a figure.
    pub source: Option<String>,
    /// How the figure comes about, or why there is none.
    pub method: String,
    /// What an upper bound depends on; empty for other kinds.
    pub caveat: String,
    /// The same for other extents of the change.
    pub variants: Vec<Variant>,
}

/// A figure with what it may be at least and at most.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Range {
    /// At least.
    pub low: f64,
    /// Most likely.
    pub likely: f64,
    /// At most.
    pub high: f64,
}

/// Another extent of a change.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Variant {
    /// What it is, such as `10 requests a connection`.
    pub change: String,
    /// Share (0 to 1) of the service's CPU time that it saves.
    pub cpu_ratio: Range,
}

/// What to change.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Remedy {
    /// The server that it is for; `any server` where that is not known.
    pub server: String,
    /// The change in sentences.
    pub change: String,
    /// What to write into the configuration, line by line; may be empty.
    pub directive: String,
}
