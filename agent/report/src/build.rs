//! Makes a report from the ledger and from what only the caller knows.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::Duration;

use tlsprof_advise::{About, Finding};
use tlsprof_common::{Reason, Resumption, Role, Step, WaitReason};
use tlsprof_ledger::{
    CostDistribution, Distribution, HandshakeKey, HandshakeSum, Ledger, RoleAccount,
    ServiceAccount, is_lower_bound,
};
use tlsprof_library::reason_name;

use super::model::{
    self, AgentCost, Command, CpuSeconds, ErrorCount, HandshakeCost, HandshakeGroup, Host, Loss,
    Outcome, Quantiles, Report, Requests, SCHEMA_VERSION, Service, StepCost, TlsLibrary, Wait,
    Witness,
};
use super::{accept_queue, connections, cpu, findings, sampled_steps, tls};

/// What the ledger does not know about a profile.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The machine.
    pub host: Host,
    /// When the profile began, RFC 3339, UTC.
    pub started_at: String,
    /// How long it lasted.
    pub duration: Duration,
    /// The services that were profiled, by name.
    pub services: BTreeMap<String, ServiceFacts>,
    /// What the rules find in the ledger.
    pub findings: Vec<Finding>,
    /// Data that was lost, by reason; zeros are left out.
    pub losses: Vec<Loss>,
    /// What the profile cost.
    pub agent: AgentCost,
    /// The command profiled.
    pub command: Option<Command>,
    /// Requests of the load, where they are known.
    pub requests: Option<Requests>,
    /// What a reader must know to judge the figures.
    pub notes: Vec<String>,
}

/// What the ledger does not know about a service.
#[derive(Clone, Debug, Default)]
pub struct ServiceFacts {
    /// Path of the executable.
    pub executable: String,
    /// Processes alive at the end.
    pub processes: u32,
    /// TCP ports it listens on.
    pub ports: Vec<u16>,
    /// TLS libraries found in it.
    pub tls_libraries: Vec<TlsLibrary>,
    /// The user named it as what to profile.
    pub named: bool,
    /// The load was for it: see [`mark_target`](super::mark_target).
    pub is_target: bool,
}

impl ServiceFacts {
    /// What rules must know of it.
    pub fn about(&self) -> About<'_> {
        let versions = self.tls_libraries.iter().filter_map(openssl_version);
        About {
            executable: &self.executable,
            named: self.named,
            listens: !self.ports.is_empty(),
            is_target: self.is_target,
            // Of several, the one that can do least.
            openssl: versions.min(),
        }
    }
}

fn openssl_version(library: &TlsLibrary) -> Option<(u32, u32)> {
    let mut numbers = library.version.split('.').map(str::parse);
    let version = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (library.kind == "OpenSSL").then_some(version)
}

/// Makes the report: services with the most expensive handshakes first, then those with the most
/// CPU time.
pub fn build(facts: Facts, ledger: &Ledger) -> Report {
    let mut known = facts.services;
    for (name, _) in ledger.services() {
        known.entry(name.to_owned()).or_default();
    }
    let mut services: Vec<Service> = known
        .into_iter()
        .map(|(name, known)| {
            let account = ledger.service(&name);
            let none = ServiceAccount::default();
            let requests = facts.requests.clone().filter(|_| known.is_target);
            let mut one = service(name, known, account.unwrap_or(&none), ledger.now());
            one.requests = requests.filter(|requests| one.can_have(requests));
            one
        })
        .collect();
    services.sort_by(by_cost);
    let mut losses = facts.losses;
    losses.retain(|loss| loss.count > 0);
    Report {
        schema_version: SCHEMA_VERSION,
        tlsprof_version: env!("CARGO_PKG_VERSION").to_owned(),
        host: facts.host,
        started_at: facts.started_at,
        duration_seconds: facts.duration.as_secs_f64(),
        findings: findings::of(&facts.findings),
        services,
        losses,
        agent: facts.agent,
        command: facts.command,
        notes: facts.notes,
        sampling: cpu::sampling(ledger),
    }
}

/// Servers before their clients: the question is about a server.
fn by_cost(a: &Service, b: &Service) -> Ordering {
    let cost = |one: &Service| {
        [
            one.server_cpu_seconds(),
            one.handshake_cpu_seconds(),
            one.cpu_seconds.total(),
        ]
    };
    let costs = cost(b).into_iter().zip(cost(a));
    let unequal = |(b, a): (f64, f64)| b.total_cmp(&a);
    let by_name = || a.service_name.cmp(&b.service_name);
    costs
        .map(unequal)
        .fold(Ordering::Equal, Ordering::then)
        .then_with(by_name)
}

impl HandshakeGroup {
    /// Whether an alert ended them whose name TLS 1.3 may have encrypted.
    pub fn may_hide_its_alert(&self) -> bool {
        self.outcome == Outcome::Failed
            && self.source == Witness::Socket
            && self.version == "TLS1.3"
    }
}

impl Service {
    /// CPU time of all its handshakes, in seconds.
    pub fn handshake_cpu_seconds(&self) -> f64 {
        self.cpu_seconds_of(|_| true)
    }

    /// CPU time of the handshakes in which it is the server, in seconds.
    fn server_cpu_seconds(&self) -> f64 {
        self.cpu_seconds_of(|group| group.role == model::Role::Server)
    }

    fn cpu_seconds_of(&self, wanted: impl Fn(&HandshakeGroup) -> bool) -> f64 {
        let groups = self.handshakes.iter().filter(|group| wanted(group));
        // Not sum(): that of nothing is -0.0.
        groups.fold(0.0, |sum, group| sum + group.cpu_seconds)
    }

    /// How many handshakes ended, in any way.
    pub fn handshake_count(&self) -> u64 {
        self.handshakes.iter().map(|group| group.count).sum()
    }
}

impl CpuSeconds {
    /// User and kernel mode together, in seconds.
    pub fn total(self) -> f64 {
        self.user + self.system
    }
}

/// One service as it is in a report, `now` by the ledger's clock.
pub fn service(
    service_name: String,
    facts: ServiceFacts,
    account: &ServiceAccount,
    now: Duration,
) -> Service {
    let profiled = facts
        .tls_libraries
        .iter()
        .any(|library| library.state == "profiled");
    let handshakes = groups(account);
    Service {
        service_name,
        executable: facts.executable,
        processes: facts.processes,
        ports: facts.ports,
        tls_libraries: facts.tls_libraries,
        cpu_seconds: CpuSeconds {
            user: account.cpu_user.as_secs_f64(),
            system: account.cpu_system.as_secs_f64(),
        },
        activities: cpu::activities(account),
        cpu_samples: cpu::samples(account),
        primitives: cpu::primitives(account),
        primitive_samples: cpu::primitive_samples(account),
        unit_costs: cpu::unit_costs(account),
        handshake_cpu_is_lower_bound: cpu_is_lower_bound(&handshakes),
        handshakes,
        handshake_costs: per_role(account, costs),
        steps: per_role(account, steps),
        sampled_steps: sampled_steps::of(account),
        hidden_signature: account.hidden_signature().map(str::to_owned),
        waits: per_role(account, waits),
        requests: None,
        connections: connections::of(account, now),
        connections_from_before: account.connections_from_before,
        ephemeral_ports: connections::ephemeral_ports(account, now),
        accept_queue: accept_queue::of(&account.accept_queue),
        hellos: per_role(account, tls::hellos),
        alerts: per_role(account, tls::alerts),
        application_bytes: per_role(account, tls::application),
        socket_handshakes: per_role(account, tls::socket_handshakes),
        estimated_handshakes: per_role(account, tls::estimated),
        estimated_turns: connections::estimated_turns(account),
        agreement: per_role(account, tls::agreement),
        source: tls::source(account, profiled),
    }
}

fn per_role<T>(account: &ServiceAccount, of: impl Fn(Role, &RoleAccount) -> Vec<T>) -> Vec<T> {
    let roles = account.roles.iter();
    roles.flat_map(|(role, kept)| of(*role, kept)).collect()
}

fn groups(account: &ServiceAccount) -> Vec<HandshakeGroup> {
    let mut groups: Vec<_> = account
        .handshakes
        .iter()
        .map(|(key, sum)| group(key, sum))
        .collect();
    groups.sort_by(|a, b| b.cpu_seconds.total_cmp(&a.cpu_seconds));
    groups
}

/// Whether the CPU time of these handshakes is a lower bound.
fn cpu_is_lower_bound(handshakes: &[HandshakeGroup]) -> bool {
    let sum = |of: fn(&HandshakeGroup) -> u64| handshakes.iter().map(of).sum();
    is_lower_bound(sum(|group| group.offloaded), sum(|group| group.count))
}

fn group(key: &HandshakeKey, sum: &HandshakeSum) -> HandshakeGroup {
    HandshakeGroup {
        role: key.role.label().into(),
        version: key.version.to_owned(),
        cipher: key.cipher.to_owned(),
        group: key.group.to_owned(),
        signature: key.signature.to_owned(),
        resumption: key.resumption.label().into(),
        outcome: key.outcome.label().into(),
        source: key.source.label().into(),
        offloaded: sum.offloaded,
        errors: errors(&sum.errors),
        count: sum.count,
        cpu_seconds: sum.cpu.as_secs_f64(),
        duration_seconds: sum.duration.as_secs_f64(),
    }
}

fn errors(errors: &BTreeMap<Reason, u64>) -> Vec<ErrorCount> {
    let mut errors: Vec<_> = errors
        .iter()
        .map(|(&reason, &count)| ErrorCount {
            reason: reason.number,
            name: reason_name(reason),
            count,
        })
        .collect();
    errors.sort_by_key(|error| std::cmp::Reverse(error.count));
    errors
}

fn costs(role: Role, account: &RoleAccount) -> Vec<HandshakeCost> {
    let cost = |(resumption, cost): (&Resumption, &CostDistribution)| HandshakeCost {
        role: role.label().into(),
        resumption: resumption.label().into(),
        count: cost.cpu.count(),
        cpu: quantiles(&cost.cpu),
        duration: quantiles(&cost.duration),
    };
    account.costs.iter().map(cost).collect()
}

pub(super) fn quantiles(of: &Distribution) -> Quantiles {
    Quantiles {
        mean: of.mean().as_secs_f64(),
        p50: of.quantile(0.5).as_secs_f64(),
        p90: of.quantile(0.9).as_secs_f64(),
        p99: of.quantile(0.99).as_secs_f64(),
        max: of.max().as_secs_f64(),
        mean_error: of.mean_error(),
    }
}

/// The steps that took time.
fn steps(role: Role, account: &RoleAccount) -> Vec<StepCost> {
    let kept = account.steps.settled();
    let cost = |step: model::Step, cpu: Duration, measured_handshakes, handshakes| StepCost {
        role: role.label().into(),
        step,
        cpu_seconds: cpu.as_secs_f64(),
        measured_handshakes,
        handshakes,
    };
    let mut costs: Vec<_> = Step::ALL
        .into_iter()
        .map(|step| {
            let measured = kept.measured_handshakes(step);
            cost(
                step.label().into(),
                kept.cpu(step),
                measured,
                kept.handshakes(step),
            )
        })
        .collect();
    let unmeasured = kept.unmeasured();
    let handshakes = unmeasured.handshakes + account.socket.handshakes;
    if handshakes > 0 {
        let cpu = unmeasured.cpu() + account.socket.cpu;
        costs.push(cost(model::Step::Unmeasured, cpu, 0, handshakes));
    }
    costs.retain(|cost| cost.cpu_seconds > 0.0);
    costs
}

fn waits(role: Role, account: &RoleAccount) -> Vec<Wait> {
    let waits = WaitReason::ALL.into_iter().zip(account.waits);
    waits
        .filter(|(_, time)| !time.is_zero())
        .map(|(reason, time)| Wait {
            role: role.label().into(),
            reason,
            seconds: time.as_secs_f64(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::super::sample;
    use super::*;

    #[test]
    fn the_parts_of_a_report_add_up() {
        let report = sample::report();
        for service in &report.services {
            let steps: f64 = service.steps.iter().map(|step| step.cpu_seconds).sum();
            assert!((steps - service.handshake_cpu_seconds()).abs() < 1e-9);
            if let Some(samples) = service.cpu_samples {
                let activities = service.activities.iter().map(|one| one.cpu_seconds);
                let sum = activities.sum::<f64>() + samples.unattributed_seconds;
                assert!((sum - service.cpu_seconds.total()).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn services_without_handshakes_are_listed_by_cpu_time() {
        let mut ledger = Ledger::default();
        for (name, milliseconds) in [("a", 5), ("b", 0), ("c", 7)] {
            ledger.add_cpu(name, Duration::from_millis(milliseconds), Duration::ZERO);
        }
        let names = |report: &Report| -> Vec<String> {
            let services = report.services.iter();
            services.map(|one| one.service_name.clone()).collect()
        };
        let facts = Facts {
            services: BTreeMap::new(),
            ..sample::facts()
        };
        assert_eq!(names(&build(facts, &ledger)), ["c", "a", "b"]);
    }

    #[test]
    fn the_most_expensive_service_comes_first_and_silent_ones_are_kept() {
        let report = sample::report();
        assert_eq!(report.services[0].service_name, "nginx.service");
        let silent = report.services.last().unwrap();
        assert_eq!(silent.service_name, "sshd.service");
        assert_eq!(silent.source, model::Source::None);
    }

    #[test]
    fn losses_of_zero_are_left_out() {
        assert!(sample::report().losses.iter().all(|loss| loss.count > 0));
    }
}
