//! What is wrong with a service, and what a change would save.
//!
//! Pure: rules over the accounts of the ledger. A finding fires on an effect that was
//! measured, never on configuration alone: it needs enough data, and a saving that is
//! worth the change ([`Thresholds`]). Each has a page in `docs/findings/`.
//!
//! `rules` says what is found, `costs` what the alternative would cost, `remedies`
//! what to change in the server at hand.

mod cause;
mod costs;
mod finding;
mod id;
#[cfg(test)]
mod pages;
mod protection;
mod range;
mod remedies;
mod rules;
mod saving;
mod server;
mod subject;
#[cfg(test)]
mod tests;
mod upkeep;

use std::time::Duration;

use crate::ledger::Ledger;

pub use costs::{Calibration, Calibrations, CostSource, Costs, Operation, Records, Work};
pub use finding::{Basis, Evidence, Finding, Observed, Severity};
pub use id::Id;
pub use protection::{Hash, Protection};
pub use range::Range;
pub use remedies::{Remedy, remedy};
pub use saving::{Prediction, Saving, Variant};
pub use server::Server;
use subject::Subject;

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
}

/// Findings on all services of the ledger, gravest first.
///
/// `executable` tells the path of a service's executable, empty where it is not
/// known.
pub fn advise<'a>(
    ledger: &Ledger,
    calibrations: &Calibrations,
    executable: impl Fn(&str) -> &'a str,
    setting: Setting,
    thresholds: Thresholds,
) -> Vec<Finding> {
    let costs = Costs::new(ledger, calibrations);
    let services = ledger.services();
    let mut findings: Vec<Finding> = services
        .flat_map(|(name, account)| {
            let subject = Subject {
                name,
                server: Server::of(executable(name)),
                account,
                now: ledger.now(),
                setting,
                costs: &costs,
                thresholds,
            };
            rules::apply(&subject)
        })
        .collect();
    findings.sort_by(|a, b| {
        let by_saving = b.prediction.seconds().total_cmp(&a.prediction.seconds());
        a.severity.cmp(&b.severity).then(by_saving)
    });
    findings
}
