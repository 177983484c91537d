//! What is wrong with a service, and what a change would save.
//!
//! Pure: rules over the accounts of the ledger. A finding fires on an effect that was
//! measured, never on configuration alone: it needs enough data, and a saving that is
//! worth the change ([`Thresholds`]). Each has a page in `docs/findings/`.
//!
//! `findings` has a file for each, `costs` says what alternatives cost; what several findings
//! share stands beside these.

mod costs;
mod endings;
mod finding;
mod findings;
mod groups;
mod hybrid;
mod protection;
mod range;
mod resumed;
mod sampled;
mod saving;
mod server;
mod setting;
mod subject;
mod sum;
#[cfg(test)]
mod tests;
mod upkeep;
mod waits;

use tlsprof_ledger::Ledger;

pub use costs::{
    Calibration, Calibrations, CostSource, Costs, Operation, Records, THIS_HOST, Work,
};
pub use finding::{Basis, Evidence, Finding, Kind, NEARLY_ALL, Observed, Remedy, Severity};
pub use hybrid::{Hybrid, X25519MLKEM768};
pub use protection::{Hash, Protection};
pub use range::Range;
pub use saving::{Prediction, Saving, Variant};
pub use server::Server;
pub use setting::{Setting, Thresholds};
use subject::Subject;
pub use subject::is_server;

/// What is known of a service beside its account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About<'a> {
    /// Path of its executable; empty where it is not known.
    pub executable: &'a str,
    /// The user named it as what to profile.
    pub named: bool,
    /// It listens on a TCP port.
    pub listens: bool,
    /// The load that the setting speaks of was for it.
    pub is_target: bool,
    /// Major and minor version of the OpenSSL that it uses.
    pub openssl: Option<(u32, u32)>,
}

/// Findings on all services of the ledger, gravest first. A service that is a client only, such
/// as a load generator, has none unless the user named it.
///
/// `about` is what is known of a service beside the ledger.
pub fn advise<'a>(
    ledger: &Ledger,
    calibrations: &Calibrations,
    about: impl Fn(&str) -> Option<About<'a>>,
    setting: Setting,
    thresholds: Thresholds,
) -> Vec<Finding> {
    let costs = Costs::new(ledger, calibrations);
    let services = ledger.services();
    let mut findings: Vec<Finding> = services
        .flat_map(|(name, account)| {
            let about = about(name).unwrap_or_default();
            let setting = Setting {
                client_closes: setting.client_closes.filter(|_| about.is_target),
                ..setting
            };
            let subject = Subject {
                name,
                server: Server::of(about.executable),
                hybrid: Hybrid::of(about.openssl, account),
                account,
                now: ledger.now(),
                setting,
                costs: &costs,
                thresholds,
            };
            let is_judged = about.named || about.listens || is_server(account);
            if is_judged {
                findings::apply(&subject)
            } else {
                Vec::new()
            }
        })
        .collect();
    findings.sort_by(|a, b| {
        let by_saving = b.prediction.seconds().total_cmp(&a.prediction.seconds());
        a.severity.cmp(&b.severity).then(by_saving)
    });
    findings
}
