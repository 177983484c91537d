//! The accounts of all services.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tlsprof_common::Source;
use tlsprof_evidence::{Evidence, Handshake};

use super::limits::{Limits, OTHER};
use super::since::Since as _;
use super::{Accounted, NetworkEvents, Sampling, ServiceAccount};

/// The accounts, written by the session and read by the outlets.
pub type SharedLedger = std::sync::Arc<std::sync::RwLock<Ledger>>;

/// Services beyond the limit whose names are kept; those that there is evidence of come back when all are forgotten.
const MAX_BEYOND: usize = 1024;

/// The accounts of all services.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub(super) limits: Limits,
    pub(super) services: BTreeMap<String, ServiceAccount>,
    /// Services of which something was booked under [`OTHER`].
    beyond: BTreeSet<String>,
    pub(super) now: Duration,
    pub(super) ownerless: u64,
    pub(super) unprofiled: NetworkEvents,
    pub(super) sampling: Sampling,
    pub(super) period: Duration,
    pub(super) first_period: Option<Duration>,
}

impl Ledger {
    /// An empty ledger.
    pub const fn new(limits: Limits) -> Self {
        Self {
            limits,
            services: BTreeMap::new(),
            beyond: BTreeSet::new(),
            now: Duration::ZERO,
            ownerless: 0,
            unprofiled: NetworkEvents {
                opened: 0,
                closed: 0,
                bytes: 0,
            },
            sampling: Sampling::OFF,
            period: Duration::ZERO,
            first_period: None,
        }
    }

    /// Books what happened to a service. Processes and hellos have other ways.
    pub fn book(&mut self, service: &str, evidence: &Evidence) {
        match evidence {
            Evidence::Handshake(handshake) => self.record(service, handshake),
            Evidence::Opened(opening) => self.record_opening(service, opening),
            Evidence::Closed(connection) => self.record_connection(service, connection),
            Evidence::Compared(comparison) => self.record_comparison(service, comparison),
            Evidence::Process(_) | Evidence::Hello(_) => {}
        }
    }

    /// Books a handshake that ended. Times over an hour count as an hour.
    pub fn record(&mut self, service: &str, handshake: &Handshake) {
        let limits = self.limits;
        self.account_mut(service).record(handshake, limits);
    }

    /// Sets what the monotonic clock says.
    pub const fn advance(&mut self, now: Duration) {
        self.now = now;
    }

    /// What the monotonic clock said last.
    pub const fn now(&self) -> Duration {
        self.now
    }

    /// Books CPU time that the kernel accounted to the service's processes
    /// since the last call, ended processes included, and divides it like the samples
    /// that came in between.
    pub fn add_cpu(&mut self, service: &str, user: Duration, system: Duration) {
        let now = self.now;
        let name = self.booked_name(service).to_owned();
        let account = self.services.entry(name).or_default();
        account.cpu_user = account.cpu_user.saturating_add(user);
        account.cpu_system = account.cpu_system.saturating_add(system);
        let total = account.cpu();
        let new = Accounted { user, system };
        account.activities.add_cpu(new, total, now, &self.sampling);
        account.step_samples.note_reading(now);
        account.follow_samples(now);
    }

    /// The name that a service is booked under: its own, or [`OTHER`] when it
    /// is beyond the limit.
    pub fn booked_name<'a>(&self, service: &'a str) -> &'a str {
        let named = self.services.len() - usize::from(self.services.contains_key(OTHER));
        if named < self.limits.services || self.services.contains_key(service) {
            service
        } else {
            OTHER
        }
    }

    /// Notes that something of a service is booked. Returns the name that it is booked under.
    pub fn note_booked<'a>(&mut self, service: &'a str) -> &'a str {
        let name = self.booked_name(service);
        if name != service && !self.beyond.contains(service) {
            if self.beyond.len() >= MAX_BEYOND {
                self.beyond.clear();
            }
            self.beyond.insert(service.to_owned());
        }
        name
    }

    /// Services of which something was booked, by their own names also where it was booked under [`OTHER`].
    pub fn booked_services(&self) -> impl Iterator<Item = &str> {
        let own = self.services.keys().filter(|name| *name != OTHER);
        own.chain(&self.beyond).map(String::as_str)
    }

    /// CPU time of all services.
    pub fn cpu(&self) -> Duration {
        let accounts = self.services.values();
        accounts
            .map(|account| account.cpu_user + account.cpu_system)
            .sum()
    }

    /// Probes hit inside the handshakes of all services.
    pub fn probe_hits(&self) -> u64 {
        self.services
            .values()
            .map(|account| account.probe_hits)
            .sum()
    }

    /// Whether probes in a TLS library have shown any handshake.
    pub fn has_library_handshakes(&self) -> bool {
        let keys = self.services.values().flat_map(|one| one.handshakes.keys());
        keys.into_iter().any(|key| key.source == Source::Library)
    }

    /// All accounts, by name.
    pub fn services(&self) -> impl Iterator<Item = (&str, &ServiceAccount)> {
        self.services
            .iter()
            .map(|(name, account)| (name.as_str(), account))
    }

    /// The account of one service.
    pub fn service(&self, name: &str) -> Option<&ServiceAccount> {
        self.services.get(name)
    }

    /// What came after an earlier state, of services of which there was evidence.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self {
            services: self.services.since(&earlier.services),
            beyond: BTreeSet::new(),
            ownerless: self.ownerless.since(&earlier.ownerless),
            unprofiled: self.unprofiled.since(earlier.unprofiled),
            limits: self.limits,
            now: self.now,
            sampling: self.sampling.clone(),
            period: self.period,
            first_period: self.first_period,
        }
    }

    pub(super) fn account_mut(&mut self, service: &str) -> &mut ServiceAccount {
        let name = self.note_booked(service).to_owned();
        self.services.entry(name).or_default()
    }
}
