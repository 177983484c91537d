//! Reads the counters from the ledger and the agent's status at each scrape.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use crate::evidence::{Outcome, Step, WaitReason};
use crate::ledger::{Ledger, ServiceAccount};

use super::{
    AgentStatus, SharedLedger, accept_queue, connections, cpu, hellos, load_tests, sources,
};

/// Label names and values.
pub(super) type Labels<'a, const N: usize> = [(&'static str, &'a str); N];

/// The step of handshakes that could not be divided into steps.
const UNMEASURED: &str = "unmeasured";

/// One metric family that is being written.
pub(super) struct Writer<'a>(MetricEncoder<'a>);

impl<'a> Writer<'a> {
    /// Begins a counter; `name` is without `_total`, which the encoder adds.
    pub(super) fn counter(
        encoder: &'a mut DescriptorEncoder<'_>,
        name: &'a str,
        help: &str,
    ) -> Result<Self, fmt::Error> {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        Ok(Self(metric))
    }

    pub(super) fn gauge(
        encoder: &'a mut DescriptorEncoder<'_>,
        name: &'a str,
        help: &str,
    ) -> Result<Self, fmt::Error> {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        Ok(Self(metric))
    }

    pub(super) fn count(&mut self, labels: &impl EncodeLabelSet, value: u64) -> fmt::Result {
        let mut metric = self.0.encode_family(labels)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    pub(super) fn seconds(&mut self, labels: &impl EncodeLabelSet, value: Duration) -> fmt::Result {
        let mut metric = self.0.encode_family(labels)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&value.as_secs_f64(), None)
    }

    pub(super) fn value(&mut self, labels: &impl EncodeLabelSet, value: u64) -> fmt::Result {
        self.0.encode_family(labels)?.encode_gauge(&value)
    }

    pub(super) fn ratio(&mut self, labels: &impl EncodeLabelSet, value: f64) -> fmt::Result {
        self.0.encode_family(labels)?.encode_gauge(&value)
    }
}

/// Counters of the ledger.
#[derive(Debug)]
pub(super) struct LedgerCollector(pub(super) SharedLedger);

impl Collector for LedgerCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let ledger = self.0.read().unwrap_or_else(PoisonError::into_inner);
        handshakes(&mut encoder, &ledger)?;
        outcomes(&mut encoder, &ledger)?;
        steps(&mut encoder, &ledger)?;
        waits(&mut encoder, &ledger)?;
        sources::encode(&mut encoder, &ledger)?;
        hellos::encode(&mut encoder, &ledger)?;
        connections::encode(&mut encoder, &ledger)?;
        accept_queue::encode(&mut encoder, &ledger)?;
        cpu::encode(&mut encoder, &ledger)
    }
}

fn handshakes(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_handshakes",
        "TLS handshakes that ended, by what was negotiated and how they ended.",
    )?;
    for (service_name, account) in ledger.services() {
        // A source is no label of these: its sums stand next to each other.
        let mut sums = account.handshakes.iter().peekable();
        while let Some((key, sum)) = sums.next() {
            let mut count = sum.count;
            while let Some((_, more)) = sums.next_if(|(next, _)| next.is_like(key)) {
                count += more.count;
            }
            let labels: Labels<'_, 8> = [
                ("service_name", service_name),
                ("role", key.role.label()),
                ("version", key.version),
                ("cipher", key.cipher),
                ("group", key.group),
                ("signature", key.signature),
                ("resumption", key.resumption.label()),
                ("outcome", key.outcome.label()),
            ];
            metric.count(&labels, count)?;
        }
    }
    Ok(())
}

/// Of all outcomes in each role that a service has: a counter is to begin at zero.
fn outcomes(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_handshake_outcome_cpu_seconds",
        "CPU time of TLS handshakes that ended, by how they ended.",
    )?;
    for (service_name, account) in ledger.services() {
        for role in account.roles.keys() {
            for outcome in Outcome::ALL {
                let labels: Labels<'_, 3> = [
                    ("service_name", service_name),
                    ("role", role.label()),
                    ("outcome", outcome.label()),
                ];
                metric.seconds(&labels, account.cpu_of(*role, outcome))?;
            }
        }
    }
    Ok(())
}

fn steps(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_handshake_step_cpu_seconds",
        "CPU time of TLS handshakes by step, estimated for handshakes whose steps were not measured.",
    )?;
    for (service_name, account) in ledger.services() {
        for (role, kept) in &account.roles {
            for step in Step::ALL {
                let labels: Labels<'_, 3> = [
                    ("service_name", service_name),
                    ("role", role.label()),
                    ("step", step.label()),
                ];
                metric.seconds(&labels, kept.steps.cpu(step))?;
            }
            let labels: Labels<'_, 3> = [
                ("service_name", service_name),
                ("role", role.label()),
                ("step", UNMEASURED),
            ];
            metric.seconds(&labels, kept.unmeasured_cpu())?;
        }
    }
    Ok(())
}

fn waits(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_handshake_wait_seconds",
        "Time off the CPU inside TLS handshakes, by reason.",
    )?;
    let with_handshakes = |(_, account): &(&str, &ServiceAccount)| !account.roles.is_empty();
    for (service_name, account) in ledger.services().filter(with_handshakes) {
        for reason in WaitReason::ALL {
            let labels: Labels<'_, 2> =
                [("service_name", service_name), ("reason", reason.label())];
            metric.seconds(&labels, account.wait(reason))?;
        }
    }
    Ok(())
}

/// What the agent says of itself.
#[derive(Debug)]
pub(super) struct AgentCollector(pub(super) Arc<RwLock<AgentStatus>>);

impl Collector for AgentCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = self.0.read().unwrap_or_else(PoisonError::into_inner);
        build_info(&mut encoder)?;
        own_cost(&mut encoder, &status)?;
        losses(&mut encoder, &status)?;
        capabilities(&mut encoder, &status)?;
        load_tests::encode(&mut encoder, status.load_tests)
    }
}

/// No labels.
pub(super) const NONE: Labels<'static, 0> = [];

fn build_info(encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let mut metric = Writer::gauge(
        encoder,
        "tlsprof_agent_build_info",
        "Always 1; the version is a label.",
    )?;
    metric.value(&[("version", env!("CARGO_PKG_VERSION"))], 1)
}

fn own_cost(encoder: &mut DescriptorEncoder<'_>, status: &AgentStatus) -> fmt::Result {
    Writer::counter(
        encoder,
        "tlsprof_agent_cpu_seconds",
        "CPU time of the agent's process.",
    )?
    .seconds(&NONE, status.cpu)?;
    Writer::gauge(
        encoder,
        "tlsprof_agent_resident_memory_bytes",
        "Resident memory of the agent's process.",
    )?
    .value(&NONE, status.resident_memory_bytes)?;
    Writer::counter(
        encoder,
        "tlsprof_agent_bpf_run_seconds",
        "Time inside the agent's BPF programs, spent by the targets.",
    )?
    .seconds(&NONE, status.bpf_run)?;
    Writer::counter(
        encoder,
        "tlsprof_agent_bpf_runs",
        "Runs of the agent's BPF programs.",
    )?
    .count(&NONE, status.bpf_runs)?;
    Writer::counter(
        encoder,
        "tlsprof_agent_probe_hits",
        "Hits of probes on targets.",
    )?
    .count(&NONE, status.probe_hits)?;
    Writer::counter(
        encoder,
        "tlsprof_agent_target_cost_seconds",
        "Estimated CPU time that targets spent on probes and hooks, programs and what leads to them.",
    )?
    .seconds(&NONE, status.target_cost)?;
    Writer::gauge(
        encoder,
        "tlsprof_agent_step_probes_duty_ratio",
        "Share of the time in which the probes of public-key steps are attached.",
    )?
    .ratio(&NONE, status.step_duty_ratio)?;
    Writer::gauge(
        encoder,
        "tlsprof_agent_profiled_images",
        "Executable files that have probes.",
    )?
    .value(&NONE, status.profiled_images)?;
    Writer::gauge(
        encoder,
        "tlsprof_agent_services",
        "Services that are running and known to the agent.",
    )?
    .value(&NONE, status.services)
}

fn losses(encoder: &mut DescriptorEncoder<'_>, status: &AgentStatus) -> fmt::Result {
    let mut metric = Writer::counter(
        encoder,
        "tlsprof_agent_events_lost",
        "Records and calls that were lost, by reason.",
    )?;
    for (reason, count) in &status.events_lost {
        metric.count(&[("reason", *reason)], *count)?;
    }
    Ok(())
}

/// One series for each capability and state, 1 for the state it is in: an
/// alert can be written on `unavailable` without knowing the other states.
fn capabilities(encoder: &mut DescriptorEncoder<'_>, status: &AgentStatus) -> fmt::Result {
    let mut metric = Writer::gauge(
        encoder,
        "tlsprof_agent_capability",
        "1 for the state that the capability is in, 0 for the others.",
    )?;
    for capability in &status.capabilities {
        for state in ["available", "degraded", "unavailable"] {
            let labels: Labels<'_, 2> = [("capability", capability.name), ("state", state)];
            metric.value(&labels, u64::from(capability.state.label() == state))?;
        }
    }
    Ok(())
}
