//! What the rules are applied in.

use std::time::Duration;

/// When a finding is worth telling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Handshakes, or connections or CPU samples where a finding is about these, on which a
    /// finding must rest.
    pub min_handshakes: u64,
    /// Share (0 to 1) of the service's CPU time, or of the time that its handshakes
    /// take, that the change must save.
    pub min_saving: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            min_handshakes: 100,
            min_saving: 0.05,
        }
    }
}

/// What a profile was made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// How long the ledger was kept.
    pub elapsed: Duration,
    /// Whether the CPUs have instructions for AES.
    pub aes_in_hardware: bool,
    /// How the load tool asks its target to close each connection after one request, in a sentence
    /// without a full stop; None if it does not, or is not known.
    pub client_closes: Option<&'static str>,
}
