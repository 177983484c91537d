//! Services under watch: what they do each second, the last hour, and what is wrong with them.
//!
//! For outlets that are looked at while the profile goes on: the live page and `tlsprof top`.
//! Both take readings of their ledger and let services be judged in the same way; neither a
//! clock nor a socket is in here. Memory is bounded: see [`Bounds`] for the hour, and
//! [`Recent`] for the last minutes.

mod figures;
mod history;
mod rates;
mod series;
mod state;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{PoisonError, RwLockReadGuard};
use std::time::Duration;

use tlsprof_advise::{Calibrations, Finding, Setting, Thresholds, advise};
use tlsprof_ledger::{Ledger, OTHER, Recent, SharedLedger};
use tlsprof_report::model::{AgentCost, Loss, Sampling};
use tlsprof_report::{ServiceFacts, findings_model, sampling_model, service_model};

pub use figures::{Ending, Figure, Kind, Sums};
pub use history::{Bounds, History, Interval, Span};
pub(crate) use rates::{ActivityRate, Rates, RoleRates};
pub use series::{Heading, Series, Slice};
pub use state::{About, Agent, Details, FindingHead, Reduced, SeriesState, ServiceState, State};

/// What the agent's own cost is taken over.
const OWN_SPAN: Duration = Duration::from_secs(60);

/// What the agent and the services have cost at a time.
#[derive(Clone, Debug, Default)]
struct Costs {
    at: Duration,
    agent: AgentCost,
    /// CPU time of all services.
    services: Duration,
}

/// A watch that is kept by one thread and looked at by another.
pub type SharedWatch = std::sync::Arc<std::sync::Mutex<Watch>>;

/// Services under watch.
#[derive(Clone, Debug)]
pub struct Watch {
    ledger: SharedLedger,
    about: About,
    history: History,
    recent: Recent,
    /// How many readings there were, and judgements.
    readings: u64,
    /// When the last reading was, since the profile began.
    at: Duration,
    facts: BTreeMap<String, ServiceFacts>,
    findings: Vec<Finding>,
    losses: Vec<Loss>,
    /// One for each second of the last minute, oldest first.
    costs: VecDeque<Costs>,
    sampling: Sampling,
    reduced: Option<Reduced>,
}

impl Watch {
    /// A watch that begins together with its ledger, which is empty.
    pub fn new(ledger: SharedLedger, about: About, bounds: Bounds) -> Self {
        Self {
            ledger,
            about,
            history: History::new(bounds),
            recent: Recent::default(),
            readings: 0,
            at: Duration::ZERO,
            facts: BTreeMap::new(),
            findings: Vec::new(),
            losses: Vec::new(),
            costs: VecDeque::new(),
            sampling: Sampling::default(),
            reduced: None,
        }
    }

    /// Takes a reading, at a time since the profile began: about each second, right after
    /// CPU time was booked, since else an interval may hold that of two seconds or of none.
    /// `cost` and `losses` are those since the profile began.
    pub fn read(&mut self, at: Duration, cost: AgentCost, losses: Vec<Loss>) {
        self.readings += 1;
        self.at = at;
        let ledger = read(&self.ledger);
        self.history.read(&ledger, at);
        self.sampling = sampling_model(&ledger);
        self.losses = losses;
        self.losses.retain(|loss| loss.count > 0);
        let old = |first: &Costs| first.at + OWN_SPAN < at;
        while self.costs.front().is_some_and(old) {
            self.costs.pop_front();
        }
        self.costs.push_back(Costs {
            at,
            agent: cost,
            services: ledger.cpu(),
        });
    }

    /// Says what is not measured now, to keep the budget.
    pub fn set_reduced(&mut self, reduced: Option<Reduced>) {
        self.reduced = reduced;
    }

    /// Judges all services by their last minutes; `facts` is what the session knows of them.
    /// To be called every few seconds. Nothing is calibrated, which would cost a second of
    /// CPU time.
    pub fn judge(
        &mut self,
        at: Duration,
        facts: BTreeMap<String, ServiceFacts>,
        thresholds: Thresholds,
        aes_in_hardware: bool,
    ) -> &[Finding] {
        self.readings += 1;
        let accounts = {
            let ledger = read(&self.ledger);
            self.recent.follow(&ledger, at);
            self.recent.accounts(&ledger)
        };
        self.facts = facts;
        let about = |name: &str| self.facts.get(name).map(ServiceFacts::about);
        let none = Calibrations::new();
        let setting = Setting {
            elapsed: self.recent.length(at),
            aes_in_hardware,
            client_closes: None,
        };
        self.findings = advise(&accounts, &none, about, setting, thresholds);
        &self.findings
    }

    /// The watch as it is now, which the profile no longer changes.
    #[must_use]
    pub fn frozen(&self) -> Self {
        let ledger = read(&self.ledger).clone();
        Self {
            ledger: SharedLedger::new(ledger.into()),
            ..self.clone()
        }
    }

    /// Changes with each reading and judgement; in between, all that is shown stays as it is,
    /// but for details, in which what was booked meanwhile may be.
    pub(crate) const fn reading(&self) -> u64 {
        self.readings
    }

    /// The last hour.
    pub const fn history(&self) -> &History {
        &self.history
    }

    /// What is wrong, gravest first.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// All services in an interval of the history, such as [`History::last_point`].
    pub fn state(&self, interval: &Interval) -> State {
        let ledger = &read(&self.ledger);
        let mut services: Vec<_> = interval
            .services
            .iter()
            .map(|(name, slice)| self.service(ledger, name, slice, interval.length))
            .collect();
        services.sort_by(|one, other| other.rates.cpu_cores.total_cmp(&one.rates.cpu_cores));
        let losses = self.losses.iter().cloned();
        let (losses, harmless_losses) = losses.partition(|loss| loss.reason.is_serious());
        State {
            about: self.about.clone(),
            elapsed_seconds: self.at.as_secs_f64(),
            interval_seconds: interval.length.as_secs_f64(),
            newest_point: self.history.newest(),
            services,
            findings: self.findings.iter().map(head).collect(),
            losses,
            harmless_losses,
            agent: self.agent(),
            sampling: self.sampling.clone(),
        }
    }

    /// A service over the last hour, from the point after number `since` on; None if it has
    /// no series of its own.
    #[allow(clippy::cast_possible_truncation, reason = "at most all points")]
    pub fn series(&self, service: &str, since: u64) -> Option<SeriesState> {
        let history = &self.history;
        let series = history.of(service)?;
        let spans = history.spans();
        let before = history.newest() - spans.len() as u64;
        // Numbers of another run may be beyond the newest.
        let skipped = since.clamp(before, history.newest()) - before;
        let skip = skipped as usize;
        let values = series.columns().map(|(heading, values)| {
            let values = values.iter().skip(skip);
            let values = values.map(|value| heading.in_base_units(*value));
            (heading.name(), values.collect())
        });
        let spans = || spans.iter().skip(skip);
        Some(SeriesState {
            run: self.about.run.clone(),
            service_name: service.to_owned(),
            first_point: before + skipped + 1,
            ends: spans().map(|span| span.end.as_secs_f64()).collect(),
            lengths: spans().map(|span| span.length.as_secs_f64()).collect(),
            columns: values.collect(),
        })
    }

    /// A service in detail; None if nothing is known of it.
    pub(crate) fn details(&self, service: &str) -> Option<Details> {
        let ledger = read(&self.ledger);
        let account = self.recent.account(&ledger, service);
        let facts = self.facts.get(service);
        if account.is_none() && facts.is_none() {
            return None;
        }
        let account = account.unwrap_or_default();
        let facts = facts.cloned().unwrap_or_default();
        let findings = self.findings.iter().filter(|one| one.service == service);
        let findings: Vec<Finding> = findings.cloned().collect();
        Some(Details {
            run: self.about.run.clone(),
            elapsed_seconds: self.recent.length(self.at).as_secs_f64(),
            service: service_model(service.to_owned(), facts, &account, ledger.now()),
            findings: findings_model(&findings)
                .into_iter()
                .map(Into::into)
                .collect(),
        })
    }

    fn service(
        &self,
        ledger: &Ledger,
        name: &str,
        slice: &Slice,
        length: Duration,
    ) -> ServiceState {
        let ports = self.facts.get(name).map(|facts| facts.ports.clone());
        let tls_roles = self.recent.tls_roles(ledger, name);
        // Gravest first.
        let mut findings = self.findings.iter().filter(|one| one.service == name);
        let severity = findings.next().map(|one| one.severity.label().to_owned());
        let others = u32::try_from(findings.count()).unwrap_or(u32::MAX);
        ServiceState {
            service_name: name.to_owned(),
            ports: ports.unwrap_or_default(),
            tls_roles: tls_roles
                .iter()
                .map(|role| role.label().to_owned())
                .collect(),
            has_series: name == OTHER || self.history.of(name).is_some(),
            rates: Rates::of(slice, length),
            findings: others.saturating_add(u32::from(severity.is_some())),
            severity,
        }
    }

    fn agent(&self) -> Agent {
        let (Some(first), Some(last)) = (self.costs.front(), self.costs.back()) else {
            return Agent {
                reduced: self.reduced.clone(),
                ..Agent::default()
            };
        };
        let elapsed = last.at.saturating_sub(first.at).as_secs_f64();
        let services = last.services.saturating_sub(first.services).as_secs_f64();
        let own = last.agent.cpu_seconds - first.agent.cpu_seconds;
        let profiled = last.agent.profiled_seconds - first.agent.profiled_seconds;
        Agent {
            cost: last.agent.clone(),
            cpu_cores: (elapsed > 0.0).then(|| own / elapsed),
            profiled_ratio: (services > 0.0).then(|| profiled / services),
            reduced: self.reduced.clone(),
        }
    }
}

fn read(ledger: &SharedLedger) -> RwLockReadGuard<'_, Ledger> {
    // A panic elsewhere leaves it usable: its sums are each written at once.
    ledger.read().unwrap_or_else(PoisonError::into_inner)
}

fn head(finding: &Finding) -> FindingHead {
    FindingHead {
        id: finding.kind.label.to_owned(),
        service_name: finding.service.clone(),
        severity: finding.severity.label().to_owned(),
        title: finding.title.clone(),
    }
}
