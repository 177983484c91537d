//! A finding: a conclusion with its evidence, predicted saving and remedy.

use std::time::Duration;

use tlsprof_common::Role;

use super::findings::{Advice, Kind, Target};
use super::{Prediction, Server, Work};

/// How much a finding matters, gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A fifth of the service's CPU time or more, or clients that are turned away.
    High,
    /// Worth a change soon.
    Medium,
    /// Worth a change.
    Low,
    /// A fact to know; nothing is wrong.
    Info,
}

impl Severity {
    /// The value of the report's JSON.
    pub const fn label(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
            Self::Info => "info",
        }
    }

    /// Of a change that saves a share (0 to 1) of the service's CPU time.
    pub fn of_share(share: f64) -> Self {
        match share {
            s if s >= 0.20 => Self::High,
            s if s >= 0.10 => Self::Medium,
            _ => Self::Low,
        }
    }
}

/// What a finding rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// Handshakes.
    Handshakes,
    /// TCP connections.
    Connections,
    /// CPU samples.
    Samples,
}

impl Observed {
    /// The value of the report's JSON.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Handshakes => "handshakes",
            Self::Connections => "connections",
            Self::Samples => "samples",
        }
    }
}

/// How much was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Basis {
    /// What.
    pub observed: Observed,
    /// How many.
    pub count: u64,
    /// In what time.
    pub elapsed: Duration,
}

/// Figures of the ledger, in sentences and as they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// How much was seen.
    pub basis: Basis,
    /// What was seen, in sentences.
    pub statements: Vec<String>,
    /// The figures of it: a name that ends in its unit, and the value in base units.
    pub figures: Vec<(&'static str, f64)>,
}

/// What to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// The server that it is for.
    pub server: Server,
    /// The change in a sentence or two.
    pub change: &'static str,
    /// What to write, line by line; empty where there is nothing to write.
    pub directive: &'static str,
}

impl Remedy {
    pub(super) const fn new(server: Server, (change, directive): Advice) -> Self {
        Self {
            server,
            change,
            directive,
        }
    }

    pub(super) fn of(kind: &Kind, target: Target) -> Self {
        Self::new(target.server, (kind.remedy)(target))
    }
}

/// A conclusion on one service.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Its kind.
    pub kind: &'static Kind,
    /// The service, by the name it is booked under.
    pub service: String,
    /// The service's role in what was seen.
    pub role: Role,
    /// How much it matters.
    pub severity: Severity,
    /// What is wrong, in words of an administrator, without a full stop.
    pub title: String,
    /// What it rests on.
    pub evidence: Evidence,
    /// What a change would save.
    pub prediction: Prediction,
    /// What to change.
    pub remedy: Remedy,
}

impl Finding {
    /// What could tell the saving, if it were timed in the service's library.
    pub const fn wants_calibrated(&self) -> Option<Work> {
        match self.prediction {
            Prediction::Unknown(_) => self.kind.calibration,
            _ => None,
        }
    }
}
