//! Reads the counters from the ledger and the agent's status at each scrape.

use std::fmt;
use std::sync::PoisonError;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use tlsprof_common::{Outcome, Role, Step, WaitReason};
use tlsprof_ledger::{Ledger, ServiceAccount, SharedLedger};

use super::families::{
    AGENT_BPF_RUN, AGENT_BPF_RUNS, AGENT_CAPABILITY, AGENT_CPU, AGENT_EVENTS_LOST,
    AGENT_LIBRARY_PROBES_DUTY, AGENT_PROBE_HITS, AGENT_PROFILED_IMAGES, AGENT_RESIDENT_MEMORY,
    AGENT_SERVICES, AGENT_SOCKET_CALLS_DUTY, AGENT_STEP_PROBES_DUTY, AGENT_TARGET_COST, BUILD_INFO,
    Family, HANDSHAKE_OUTCOME_CPU, HANDSHAKE_STEP_CPU, HANDSHAKE_WAIT, HANDSHAKES,
};
use super::rows::{Value, one, write};
use super::status::{AgentStatus, SharedStatus};
use super::{accept_queue, connections, cpu, hellos, load_tests, process, sources};

/// The step of handshakes that could not be divided into steps.
const UNMEASURED: &str = "unmeasured";

/// Counters of the ledger.
#[derive(Debug)]
pub(super) struct LedgerCollector(pub(super) SharedLedger);

impl Collector for LedgerCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let ledger = self.0.read().unwrap_or_else(PoisonError::into_inner);
        handshakes(&mut encoder, &ledger)?;
        sources::encode(&mut encoder, &ledger)?;
        hellos::encode(&mut encoder, &ledger)?;
        connections::encode(&mut encoder, &ledger)?;
        accept_queue::encode(&mut encoder, &ledger)?;
        cpu::encode(&mut encoder, &ledger)
    }
}

fn handshakes(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    write(encoder, &HANDSHAKES, ledger.services().flat_map(counts))?;
    // Of all outcomes in each role that a service has, or may have: a counter is to begin at zero.
    let outcomes = ledger.services().flat_map(|(name, account)| {
        let may_have = |role: Role| role == Role::Server && serves(account);
        let has = move |role: &Role| account.roles.contains_key(role) || may_have(*role);
        let roles = Role::ALL.into_iter().filter(has);
        roles.flat_map(move |role| {
            let of = |outcome: Outcome| [name, role.label(), outcome.label()];
            Outcome::ALL.map(|outcome| (of(outcome), account.cpu_of(role, outcome)))
        })
    });
    write(encoder, &HANDSHAKE_OUTCOME_CPU, outcomes)?;
    let steps = sources::accounts(ledger).flat_map(|([name, role], account)| {
        let steps = Step::ALL.map(|step| ([name, role, step.label()], account.steps.cpu(step)));
        let rest = ([name, role, UNMEASURED], account.unmeasured_cpu());
        steps.into_iter().chain([rest])
    });
    write(encoder, &HANDSHAKE_STEP_CPU, steps)?;
    let with_handshakes = |(_, account): &(&str, &ServiceAccount)| !account.roles.is_empty();
    let services = ledger.services().filter(with_handshakes);
    let waits = services.flat_map(|(name, account)| {
        WaitReason::ALL.map(|reason| ([name, reason.label()], account.wait(reason)))
    });
    write(encoder, &HANDSHAKE_WAIT, waits)
}

/// Whether a service is known as a server: it listened, or had a connection or handshake as
/// one. Once it is, it always is.
pub(super) fn serves(account: &ServiceAccount) -> bool {
    account.accept_queue.listened
        || account.connections.contains_key(&Role::Server)
        || account.roles.contains_key(&Role::Server)
}

/// A source is no label of these: its sums stand next to each other.
fn counts<'a>((name, account): (&'a str, &'a ServiceAccount)) -> Vec<([&'a str; 8], u64)> {
    let mut rows = Vec::new();
    let mut sums = account.handshakes.iter().peekable();
    while let Some((key, sum)) = sums.next() {
        let mut count = sum.count;
        while let Some((_, more)) = sums.next_if(|(next, _)| next.is_like(key)) {
            count += more.count;
        }
        let labels = [
            name,
            key.role.label(),
            key.version,
            key.cipher,
            key.group,
            key.signature,
            key.resumption.label(),
            key.outcome.label(),
        ];
        rows.push((labels, count));
    }
    rows
}

/// The agent's own figures.
#[derive(Debug)]
pub(super) struct AgentCollector(pub(super) SharedStatus);

impl Collector for AgentCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        // Counters begin at zero.
        let zero = AgentStatus::default();
        let status = known.as_ref().unwrap_or(&zero);
        let version = env!("CARGO_PKG_VERSION");
        write(&mut encoder, &BUILD_INFO, [([version], 1_u64)])?;
        own_cost(&mut encoder, status)?;
        extent(&mut encoder, known.as_ref())?;
        process::encode(&mut encoder, status)?;
        let lost = status.events_lost.iter();
        let lost = lost.map(|(reason, count)| ([reason.label()], *count));
        write(&mut encoder, &AGENT_EVENTS_LOST, lost)?;
        capabilities(&mut encoder, status)?;
        load_tests::encode(&mut encoder, status.load_tests)
    }
}

fn own_cost(encoder: &mut DescriptorEncoder<'_>, status: &AgentStatus) -> fmt::Result {
    write(encoder, &AGENT_CPU, one(status.cpu))?;
    let memory = status.resident_memory_bytes;
    write(encoder, &AGENT_RESIDENT_MEMORY, one(memory))?;
    write(encoder, &AGENT_BPF_RUN, one(status.bpf_run))?;
    write(encoder, &AGENT_BPF_RUNS, one(status.bpf_runs))?;
    write(encoder, &AGENT_PROBE_HITS, one(status.probe_hits))?;
    write(encoder, &AGENT_TARGET_COST, one(status.target_cost))
}

/// How much is measured. No series before that is known: zeros would look like a spent budget.
fn extent(encoder: &mut DescriptorEncoder<'_>, known: Option<&AgentStatus>) -> fmt::Result {
    let mut write_one = |family: &Family<0>, of: fn(&AgentStatus) -> Value| {
        write(encoder, family, known.map(|status| ([], of(status))))
    };
    write_one(&AGENT_STEP_PROBES_DUTY, |it| it.step_duty_ratio.into())?;
    write_one(&AGENT_LIBRARY_PROBES_DUTY, |it| {
        it.library_duty_ratio.into()
    })?;
    write_one(&AGENT_SOCKET_CALLS_DUTY, |it| it.calls_duty_ratio.into())?;
    write_one(&AGENT_PROFILED_IMAGES, |it| it.profiled_images.into())?;
    write_one(&AGENT_SERVICES, |it| it.services.into())
}

/// One series for each capability and state, 1 for the state it is in: an
/// alert can be written on `unavailable` without knowing the other states.
fn capabilities(encoder: &mut DescriptorEncoder<'_>, status: &AgentStatus) -> fmt::Result {
    let rows = status.capabilities.iter().flat_map(|capability| {
        ["available", "degraded", "unavailable"].map(|state| {
            let is_in = capability.state.label() == state;
            ([capability.name, state], u64::from(is_in))
        })
    });
    write(encoder, &AGENT_CAPABILITY, rows)
}
