//! The accounts of each service: handshakes, their CPU time, steps and waits;
//! TCP connections; CPU time by activity.
//!
//! Pure bookkeeping: no clock, no system call. Every sum only grows, so that it
//! can be exported as a counter, and memory is bounded by [`Limits`].

mod accept_queue;
mod alternatives;
mod connections;
mod cpu;
mod distribution;
mod flights;
mod handshakes;
mod hellos;
pub mod interval;
mod moments;
mod network;
mod origins;
mod processes;
mod profile;
mod recent;
mod remotes;
mod sources;
mod steps;
#[cfg(test)]
mod tests;
mod unit_costs;

use std::collections::BTreeMap;
use std::time::Duration;

use tlsprof_common::{Outcome, Role, Source, WaitReason};
use tlsprof_evidence::{Evidence, Handshake};

pub use accept_queue::AcceptQueueAccount;
pub use alternatives::{
    Alternatives, Chosen, CipherOffers, Consequences, RSA_TRANSPORT, TurnedAway,
};
pub use connections::{Closed, ConnectionAccount, Turns};
pub use cpu::{Accounted, Check, CpuAccount, Part, Sampling};
pub use distribution::Distribution;
use distribution::bounded_nanos;
pub use flights::{Chains, Flights, INITIAL_WINDOW};
pub use handshakes::{CostDistribution, HandshakeKey, HandshakeSum, RoleAccount};
pub use hellos::{Counts, FEATURES, HelloAccount};
pub use moments::Moments;
pub use network::NetworkEvents;
pub use origins::{Brought, Origins};
pub use processes::Processes;
pub use profile::{Code, Profile, Spot};
pub use recent::Recent;
pub use remotes::Ports;
use remotes::Remotes;
pub use sources::{Agreement, Application, ApplicationBytes, SocketAccount};
pub use steps::{Class, Pending, StepAccount};
pub use unit_costs::{Unit, UnitCost};

/// What the services and the label values beyond the limits count under.
pub const OTHER: &str = "other";

/// How much is kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Services; further ones count under [`OTHER`].
    pub services: usize,
    /// Sets of version, cipher, group and so on for each service; in further
    /// ones version, cipher, group and signature count as [`OTHER`], while
    /// role, resumption and outcome stay true.
    pub label_sets: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            services: 200,
            label_sets: 300,
        }
    }
}

/// The account of one service.
#[derive(Clone, Debug, Default)]
pub struct ServiceAccount {
    /// CPU time of the service's processes in user mode.
    pub cpu_user: Duration,
    /// CPU time of the service's processes in kernel mode.
    pub cpu_system: Duration,
    /// What that CPU time was spent on, where samples are taken.
    pub activities: CpuAccount,
    /// Probes hit inside its handshakes.
    pub probe_hits: u64,
    /// Handshakes by what was negotiated and how they ended.
    pub handshakes: BTreeMap<HandshakeKey, HandshakeSum>,
    /// What depends on the role only.
    pub roles: BTreeMap<Role, RoleAccount>,
    /// TCP connections whose opening was seen, by role.
    pub connections: BTreeMap<Role, ConnectionAccount>,
    /// TCP connections that ended, but had been open before the watch began.
    pub connections_from_before: u64,
    /// What waited, and waits, to be accepted.
    pub accept_queue: AcceptQueueAccount,
    /// Processes that began while the service was known.
    pub processes: Processes,
    remotes: Remotes,
}

impl ServiceAccount {
    /// CPU time of the service's processes in both modes.
    pub const fn cpu(&self) -> Duration {
        self.cpu_user.saturating_add(self.cpu_system)
    }

    /// CPU time of all handshakes.
    pub fn handshake_cpu(&self) -> Duration {
        self.handshakes.values().map(|sum| sum.cpu).sum()
    }

    /// CPU time of the handshakes in a role that ended in that way.
    pub fn cpu_of(&self, role: Role, outcome: Outcome) -> Duration {
        let alike =
            |(key, _): &(&HandshakeKey, &HandshakeSum)| key.role == role && key.outcome == outcome;
        let sums = self.handshakes.iter().filter(alike);
        sums.map(|(_, sum)| sum.cpu).sum()
    }

    /// How many handshakes ended, in any way.
    pub fn handshake_count(&self) -> u64 {
        self.handshakes.values().map(|sum| sum.count).sum()
    }

    /// How many TCP connections were seen, opening or ending.
    pub fn connection_count(&self) -> u64 {
        let opened = self.connections.values().map(|account| account.opened);
        opened.sum::<u64>() + self.connections_from_before
    }

    /// TIME_WAIT sockets that its connections left behind, in both roles.
    pub fn time_wait_created(&self) -> u64 {
        let roles = self.connections.values();
        roles.map(|account| account.time_wait_created).sum()
    }

    /// How many handshakes a source showed; those that two did count for the
    /// library.
    pub fn count_by(&self, source: Source) -> u64 {
        let shown = |(key, _): &(&HandshakeKey, &HandshakeSum)| key.source == source;
        let sums = self.handshakes.iter().filter(shown);
        sums.map(|(_, sum)| sum.count).sum()
    }

    /// Ephemeral ports toward the remote endpoint that takes up the most of them
    /// at a time of the monotonic clock; None if the service connects nowhere.
    pub fn ephemeral_ports(&self, now: Duration) -> Option<Ports> {
        self.remotes.busiest(now)
    }

    /// How many handshakes ended in that way.
    pub fn count_of(&self, outcome: Outcome) -> u64 {
        let ended_so = |(key, _): &(&HandshakeKey, &HandshakeSum)| key.outcome == outcome;
        let sums = self.handshakes.iter().filter(ended_so);
        sums.map(|(_, sum)| sum.count).sum()
    }

    /// Time off the CPU inside handshakes for that reason, over both roles.
    pub fn wait(&self, reason: WaitReason) -> Duration {
        let waits = self.roles.values().filter_map(|role| {
            // The array has one entry for each reason.
            role.waits.get(reason as usize)
        });
        waits.sum()
    }

    fn record(&mut self, handshake: &Handshake, limits: Limits) {
        self.probe_hits += u64::from(handshake.probe_hits);
        let mut key = HandshakeKey::of(handshake);
        if self.handshakes.len() >= limits.label_sets && !self.handshakes.contains_key(&key) {
            key = key.overflow();
        }
        self.handshakes.entry(key).or_default().record(handshake);
        let role = self.roles.entry(handshake.role).or_default();
        role.record(handshake, limits);
    }
}

/// The accounts, written by the session and read by the outlets.
pub type SharedLedger = std::sync::Arc<std::sync::RwLock<Ledger>>;

/// The accounts of all services.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    limits: Limits,
    services: BTreeMap<String, ServiceAccount>,
    now: Duration,
    ownerless: u64,
    unprofiled: NetworkEvents,
    sampling: Sampling,
    period: Duration,
}

impl Ledger {
    /// An empty ledger.
    pub const fn new(limits: Limits) -> Self {
        Self {
            limits,
            services: BTreeMap::new(),
            now: Duration::ZERO,
            ownerless: 0,
            unprofiled: NetworkEvents {
                opened: 0,
                closed: 0,
                bytes: 0,
            },
            sampling: Sampling::OFF,
            period: Duration::ZERO,
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

    fn account_mut(&mut self, service: &str) -> &mut ServiceAccount {
        let name = self.booked_name(service).to_owned();
        self.services.entry(name).or_default()
    }
}

/// A time as the ledger books it: at most an hour. The cut keeps one wrong
/// record from spoiling every sum.
pub fn bounded(time: Duration) -> Duration {
    Duration::from_nanos(bounded_nanos(time).0)
}
