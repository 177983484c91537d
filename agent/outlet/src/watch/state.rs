//! What the live page asks for, and `tlsprof top` shows. These types are the JSON of the
//! live page's interface: `docs/live-page.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use tlsprof_report::model::{AgentCost, Finding, Host, Loss, Sampling, Service};

use super::rates::Rates;
use crate::report::FindingLines;

/// The agent and its host, which stay as they are while it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Tells this run of the agent from others: what they show is not to be joined.
    pub run: String,
    /// Version of the program.
    pub tlsprof_version: String,
    /// The machine.
    pub host: Host,
    /// When the profile began, RFC 3339, UTC.
    pub started_at: String,
}

/// All services now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The agent and its host.
    #[serde(flatten)]
    pub about: About,
    /// Seconds since the profile began.
    pub(crate) elapsed_seconds: f64,
    /// What rates are taken over, in seconds; 0 before there are any.
    pub(crate) interval_seconds: f64,
    /// Number of the newest point in the history; 0 before there is one.
    pub(crate) newest_point: u64,
    /// Services, most CPU time first.
    pub services: Vec<ServiceState>,
    /// What is wrong, gravest first. Whole findings are in [`Details`].
    pub findings: Vec<FindingHead>,
    /// Data that was lost since the profile began and makes figures too low, by reason.
    pub losses: Vec<Loss>,
    /// The same for losses after which counts are complete.
    pub(crate) harmless_losses: Vec<Loss>,
    /// What the agent costs.
    pub agent: Agent,
    /// Whether CPU samples are taken.
    pub sampling: Sampling,
}

/// One service now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceState {
    /// Systemd unit, container or executable; `other` for those beyond the limit.
    pub service_name: String,
    /// TCP ports it listens on.
    pub ports: Vec<u16>,
    /// `server` and `client`: the roles in which it did handshakes in the last 5 to 10 minutes.
    pub(crate) tls_roles: Vec<String>,
    /// Whether the history has a series of its own for it; else it is in that of `other`.
    pub(crate) has_series: bool,
    /// What it does each second.
    #[serde(flatten)]
    pub(crate) rates: Rates,
    /// Findings on it.
    pub findings: u32,
    /// Severity of the gravest: `high`, `medium`, `low` or `info`.
    pub severity: Option<String>,
}

/// A finding in a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindingHead {
    /// Its kind.
    pub id: String,
    /// The service.
    pub service_name: String,
    /// `high`, `medium`, `low` or `info`.
    pub severity: String,
    /// What is wrong.
    pub title: String,
}

/// What the agent costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// Since the profile began.
    #[serde(flatten)]
    pub cost: AgentCost,
    /// CPU seconds of its own process each second, over the last minute.
    pub(crate) cpu_cores: Option<f64>,
    /// The most that profiling costs the services, as a share (0 to 1) of the CPU time that
    /// they used in the last minute.
    pub(crate) profiled_ratio: Option<f64>,
    /// What is not measured now, to keep the budget; null if all is.
    pub(crate) reduced: Option<Reduced>,
}

/// What is not measured, to keep the budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reduced {
    /// In a sentence.
    pub text: String,
    /// Whether figures of handshakes are estimates.
    pub estimates: bool,
}

/// A service over the last hour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesState {
    /// As in [`About`].
    pub run: String,
    /// The service.
    pub service_name: String,
    /// Number of the first point here; each next one is one higher.
    pub(crate) first_point: u64,
    /// End of each point, in seconds since the profile began.
    pub(crate) ends: Vec<f64>,
    /// Length of each point, in seconds.
    pub(crate) lengths: Vec<f64>,
    /// What came in each point, in base units; figures that are not here are zero.
    pub(crate) columns: BTreeMap<String, Vec<f64>>,
}

/// A service over the last 5 to 10 minutes, or since the profile began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// As in [`About`].
    pub run: String,
    /// How long that is, in seconds.
    pub(crate) elapsed_seconds: f64,
    /// The service as in a report over that time. Figures from CPU samples are not in it:
    /// they are in the history.
    pub service: Service,
    /// What is wrong with it, gravest first.
    pub findings: Vec<FindingDetails>,
}

/// A finding, and how a person reads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindingDetails {
    /// As in a report.
    #[serde(flatten)]
    pub(crate) finding: Finding,
    /// In lines.
    pub(crate) lines: FindingLines,
}

impl From<Finding> for FindingDetails {
    fn from(finding: Finding) -> Self {
        Self {
            lines: FindingLines::of(&finding),
            finding,
        }
    }
}
