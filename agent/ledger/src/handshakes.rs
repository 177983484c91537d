//! Handshakes: what distinguishes them, their sums and costs.

use std::collections::BTreeMap;
use std::time::Duration;

use tlsprof_common::{Outcome, Reason, Resumption, Role, Source, Waits};
use tlsprof_evidence::Handshake;

use super::limits::bounded_nanos;
use super::since::sums;
use super::steps::Class;
use super::{
    Agreement, Application, Distribution, Estimated, Flights, HelloAccount, Limits, Moments, OTHER,
    SocketAccount, StepAccount, bounded,
};

/// The library's reasons kept apart for each label set; the rest count under
/// reason 0.
pub(super) const REASONS: usize = 32;

/// What distinguishes handshakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandshakeKey {
    /// Role of the service.
    pub role: Role,
    /// TLS version.
    pub version: &'static str,
    /// Cipher suite.
    pub cipher: &'static str,
    /// Key exchange group.
    pub group: &'static str,
    /// Own signature.
    pub signature: &'static str,
    /// Session resumption.
    pub resumption: Resumption,
    /// How it ended.
    pub outcome: Outcome,
    /// What saw it. Last: alike handshakes of two sources stand together.
    pub source: Source,
}

sums!(RoleAccount: costs, steps, waits, socket, estimated, hellos, agreement, application, flights);

impl HandshakeKey {
    pub(super) const fn of(handshake: &Handshake) -> Self {
        Self {
            role: handshake.role,
            version: handshake.version,
            cipher: handshake.cipher,
            group: handshake.group,
            signature: handshake.signature,
            resumption: handshake.resumption,
            outcome: handshake.outcome,
            source: handshake.source,
        }
    }

    /// Whether the two differ in nothing but the source.
    pub fn is_like(&self, other: &Self) -> bool {
        let source = self.source;
        *self == Self { source, ..*other }
    }

    pub(super) const fn overflow(self) -> Self {
        Self {
            version: OTHER,
            cipher: OTHER,
            group: OTHER,
            signature: OTHER,
            ..self
        }
    }
}

/// Handshakes that are alike, added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandshakeSum {
    /// How many.
    pub count: u64,
    /// Those of them whose CPU time may be more than what is known of it: see
    /// [`SocketAccount::offloaded`].
    pub offloaded: u64,
    /// CPU time.
    pub cpu: Duration,
    /// Wall time from first call to end.
    pub duration: Duration,
    /// Reason of the library -> how many; the default for reasons beyond the limit.
    pub errors: BTreeMap<Reason, u64>,
    /// CPU time of each, for its mean and the error of that.
    pub costs: Moments,
}

sums!(HandshakeSum: count, offloaded, cpu, duration, errors, costs);

/// Whether so many of these handshakes have a CPU time that is a lower bound that their sum is one.
pub const fn is_lower_bound(offloaded: u64, handshakes: u64) -> bool {
    offloaded > handshakes / 10
}

/// Distribution of the cost of completed handshakes.
#[derive(Clone, Debug, Default)]
pub struct CostDistribution {
    /// On-CPU time.
    pub cpu: Distribution,
    /// Wall time from first call to end.
    pub duration: Distribution,
}

sums!(CostDistribution: cpu, duration);

/// What is kept for each role.
#[derive(Clone, Debug, Default)]
pub struct RoleAccount {
    /// Cost of completed handshakes by resumption.
    pub costs: BTreeMap<Resumption, CostDistribution>,
    /// CPU time by step.
    pub steps: StepAccount,
    /// Time off the CPU for each of [`WaitReason::ALL`].
    pub waits: Waits,
    /// Handshakes that only socket calls showed.
    pub socket: SocketAccount,
    /// Handshakes that are estimated.
    pub estimated: Estimated,
    /// What hellos said in clear.
    pub hellos: HelloAccount,
    /// Handshakes that two sources saw.
    pub agreement: Agreement,
    /// What TLS connections that ended carried after their handshakes.
    pub application: Application,
    /// What was sent in full handshakes.
    pub flights: Flights,
}

impl HandshakeSum {
    pub(super) fn record(&mut self, handshake: &Handshake) {
        self.count += 1;
        self.duration = self.duration.saturating_add(bounded(handshake.duration));
        self.offloaded += u64::from(handshake.offloaded);
        self.cpu = self.cpu.saturating_add(bounded(handshake.cpu));
        // A copy makes no mean surer.
        if handshake.estimate.is_none() {
            self.costs.record(bounded(handshake.cpu));
        }
        if let Some(reason) = handshake.error_reason {
            let kept = self.errors.len() < REASONS || self.errors.contains_key(&reason);
            *self
                .errors
                .entry(if kept { reason } else { Reason::default() })
                .or_default() += 1;
        }
    }
}

impl RoleAccount {
    /// CPU time that is in no step.
    pub fn unmeasured_cpu(&self) -> Duration {
        self.steps.unmeasured().cpu() + self.socket.cpu
    }

    pub(super) fn record(&mut self, handshake: &Handshake, limits: Limits) {
        self.hellos.record(handshake);
        self.socket.record(handshake);
        self.estimated.record(handshake);
        if handshake.outcome == Outcome::Completed {
            let cost = self.costs.entry(handshake.resumption).or_default();
            cost.cpu.record(bounded(handshake.cpu));
            cost.duration.record(bounded(handshake.duration));
        }
        for (sum, wait) in self.waits.iter_mut().zip(handshake.waits) {
            *sum = sum.saturating_add(bounded(wait));
        }
        // What socket calls show cannot be divided like what the library did.
        if handshake.source == Source::Library {
            let class = Class {
                resumption: handshake.resumption,
                group: handshake.group,
                signature: handshake.signature,
            };
            let nanos = bounded_nanos(handshake.cpu);
            let steps = handshake.steps.as_ref();
            self.steps.record(class, nanos, steps, limits.label_sets);
        }
    }
}
