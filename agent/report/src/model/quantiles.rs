//! Distributions in few numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Mean and quantiles in seconds; quantiles are exact to 1%.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Quantiles {
    /// Arithmetic mean, exact.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
    /// Standard error of the mean; null for less than two values, and in reports from
    /// before it was told.
    #[serde(default)]
    pub mean_error: Option<f64>,
}
