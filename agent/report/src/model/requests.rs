//! Requests that somebody else counted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Requests of the load.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
pub struct Requests {
    /// How many were answered.
    pub count: u64,
    /// `--requests`, or the load tool that printed the number: `ab`, `wrk`, `h2load`, `hey`,
    /// `oha` or `k6`.
    pub counted_by: String,
}

impl Requests {
    /// So many, counted by somebody.
    pub fn new(count: u64, counted_by: &str) -> Self {
        Self {
            count,
            counted_by: counted_by.to_owned(),
        }
    }
}
