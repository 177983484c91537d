//! The account of one service.

use std::collections::BTreeMap;
use std::time::Duration;

use tlsprof_common::{Outcome, Role, Source, Step, WaitReason};
use tlsprof_evidence::Handshake;

use super::limits::Limits;
use super::remotes::Remotes;
use super::sampled_steps::{SampledStep, StepSamples, StepSet};
use super::since::Since;
use super::{
    AcceptQueueAccount, ConnectionAccount, CpuAccount, HandshakeKey, HandshakeSum, NetworkEvents,
    Ports, Processes, RoleAccount,
};

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
    /// Those of them that speak HTTP/2, or may, and began TLS after that.
    pub(crate) http2_from_before: u64,
    /// What waited, and waits, to be accepted.
    pub accept_queue: AcceptQueueAccount,
    /// Processes that began while the service was known.
    pub processes: Processes,
    pub(super) remotes: Remotes,
    pub(super) step_samples: StepSamples,
}

/// Ephemeral ports are those of now.
impl Since for ServiceAccount {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            cpu_user: self.cpu_user.since(&earlier.cpu_user),
            cpu_system: self.cpu_system.since(&earlier.cpu_system),
            activities: self.activities.since(&earlier.activities),
            probe_hits: self.probe_hits.since(&earlier.probe_hits),
            handshakes: self.handshakes.since(&earlier.handshakes),
            roles: self.roles.since(&earlier.roles),
            connections: self.connections.since(&earlier.connections),
            connections_from_before: self
                .connections_from_before
                .since(&earlier.connections_from_before),
            http2_from_before: self.http2_from_before.since(&earlier.http2_from_before),
            accept_queue: self.accept_queue.since(&earlier.accept_queue),
            processes: self.processes.since(&earlier.processes),
            remotes: self.remotes.clone(),
            step_samples: self.step_samples.since(&earlier.step_samples),
        }
    }

    /// CPU time and processes alone are no evidence of anything.
    fn is_zero(&self) -> bool {
        self.handshakes.is_zero()
            && self.roles.is_zero()
            && self.connections.is_zero()
            && self.connections_from_before == 0
            && self.accept_queue.is_zero()
    }
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

    /// Those of them that are estimated.
    pub fn estimated_handshakes(&self) -> u64 {
        let estimated = self.roles.values().map(|role| role.estimated.handshakes);
        estimated.sum()
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

    /// Time off the CPU inside handshakes for that reason, over both roles.
    pub fn wait(&self, reason: WaitReason) -> Duration {
        let waits = self.roles.values().filter_map(|role| {
            // The array has one entry for each reason.
            role.waits.get(reason as usize)
        });
        waits.sum()
    }

    /// Events on its connections, in both roles.
    pub fn network_events(&self) -> NetworkEvents {
        let mut events = NetworkEvents {
            closed: self.connections_from_before,
            ..NetworkEvents::default()
        };
        for account in self.connections.values() {
            events.add(NetworkEvents::of(account));
        }
        events
    }

    /// Steps by samples, most CPU time first: those of all handshakes by what all negotiated.
    pub fn sampled_steps(&self) -> Vec<SampledStep> {
        self.step_samples.steps(&self.activities, self.verifies())
    }

    /// The kind of key with which a server signed what TLS 1.3 hides, if the code of its signatures tells: `rsa` of any
    /// length, `ecdsa_p256` and the like.
    pub fn hidden_signature(&self) -> Option<&'static str> {
        let computed = self.activities.primitives();
        self.step_samples.hidden_signature(computed)
    }

    /// CPU time of steps by samples, which never decreases: each time by what was negotiated then.
    pub fn sampled_step_counters(&self) -> impl Iterator<Item = (StepSet, Duration)> {
        self.step_samples.counters()
    }

    /// CPU time by step of the same handshakes over the same time, by library probes and from samples; it never
    /// decreases. Key derivation is in `other`, as it is not always probed.
    pub fn step_agreement(&self) -> impl Iterator<Item = (StepSet, [Duration; 2])> {
        self.step_samples.agreement()
    }

    /// Whether probes measured more verification than what a server does without certificates of clients:
    /// to look for the issuers of its own takes some 0.5% of a handshake.
    fn verifies(&self) -> bool {
        let Some(server) = self.roles.get(&Role::Server) else {
            return false;
        };
        let all: Duration = Step::ALL.map(|step| server.steps.cpu(step)).iter().sum();
        let verification = server.steps.cpu(Step::Verification);
        !verification.is_zero() && verification >= all / 50
    }

    /// Takes over what was sampled since the last time.
    pub(super) fn follow_samples(&mut self, now: Duration) {
        let verifies = self.verifies();
        self.step_samples.follow(&self.activities, verifies, now);
    }

    pub(super) fn record(&mut self, handshake: &Handshake, limits: Limits) {
        self.probe_hits += u64::from(handshake.probe_hits);
        self.step_samples.record(handshake);
        let mut key = HandshakeKey::of(handshake);
        if self.handshakes.len() >= limits.label_sets && !self.handshakes.contains_key(&key) {
            key = key.overflow();
        }
        self.handshakes.entry(key).or_default().record(handshake);
        let role = self.roles.entry(handshake.role).or_default();
        role.record(handshake, limits);
    }
}
