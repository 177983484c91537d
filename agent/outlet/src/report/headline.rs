//! The answer in a sentence or two, and what else concerns the report as a whole.

use std::fmt::Write;

use crate::document::{Block, Tone};
use tlsprof_common::units::{bytes, counted, percent, time};
use tlsprof_report::model::{Report, Service, Step};

use super::activities::{by_request, encryption};
use super::sampled_steps;
use super::shares::{at_least, share};
use super::wording::words;

/// What to check then.
const CHECKS: [&str; 3] = [
    "Did a client open a new TLS connection? Existing connections make no new handshakes.",
    "Does `tlsprof list` show the service and its port?",
    "Is this host ready? Run `tlsprof doctor`.",
];

/// The answer, or what to check where there is none.
pub(super) fn answer(report: &Report) -> Vec<Block> {
    if let Some(text) = headline(report) {
        return vec![Block::Lead(text)];
    }
    let silence = format!(
        "No TLS handshake was seen in {}.",
        time(report.duration_seconds)
    );
    vec![
        Block::Lead(silence),
        Block::Text("What to check:".to_owned()),
        Block::List(CHECKS.map(str::to_owned).into()),
    ]
}

/// Which service spends how much of its CPU on handshakes; None where there were none.
fn headline(report: &Report) -> Option<String> {
    let first = report
        .services
        .first()
        .filter(|s| s.handshake_count() > 0)?;
    let name = &first.service_name;
    let cpu = first.handshake_cpu_seconds();
    let handshakes = counted(first.handshake_count(), "TLS handshake", "TLS handshakes");
    let mut text = share(first).map_or_else(
        || {
            let cpu = at_least(first, time(cpu));
            format!("{name} spent {cpu} of CPU on {handshakes}.")
        },
        |share| {
            format!(
                "{name} spends {} of its CPU on TLS handshakes: {} of {}, {handshakes}.",
                at_least(first, percent(share)),
                time(cpu),
                time(first.cpu_seconds.total()),
            )
        },
    );
    if let Some((step, share)) = most_expensive_step(first) {
        let _ = write!(
            text,
            " Most expensive step: {step} ({} of handshake CPU).",
            percent(share)
        );
    }
    if let Some(share) = encryption(first) {
        let _ = write!(text, " Encryption: {}.", percent(share));
    }
    if let Some((cpu, requests)) = by_request(first) {
        let _ = write!(
            text,
            " CPU per request: {} ({requests}, everything included).",
            time(cpu)
        );
    }
    Some(text)
}

/// The most expensive step of a service and its share of the handshakes' CPU time.
fn most_expensive_step(service: &Service) -> Option<(String, f64)> {
    let named = service
        .steps
        .iter()
        .filter(|step| !matches!(step.step, Step::Unmeasured | Step::Other));
    let Some(step) = named.max_by(|a, b| a.cpu_seconds.total_cmp(&b.cpu_seconds)) else {
        return sampled_steps::most_expensive(service);
    };
    let share = step.cpu_seconds / service.handshake_cpu_seconds();
    Some((words(step.step.label()), share))
}

/// What the profile cost.
pub(super) fn own_cost(report: &Report) -> String {
    let agent = &report.agent;
    let targets: f64 = report.services.iter().map(|s| s.cpu_seconds.total()).sum();
    let of_targets = if targets > 0.0 {
        format!(
            " ({} of the services' CPU)",
            percent(agent.profiled_seconds / targets)
        )
    } else {
        String::new()
    };
    format!(
        "Overhead: tlsprof used {} of CPU and {} of memory. Its probes in these services and its \
         hooks on the whole host cost about {}{of_targets}.",
        time(agent.cpu_seconds),
        bytes(agent.memory_bytes),
        time(agent.profiled_seconds),
    )
}

/// How the command ended, if there was one.
pub(super) fn command(report: &Report) -> Option<Block> {
    let command = report.command.as_ref()?;
    let (line, status) = (command.arguments.join(" "), command.exit_status);
    let tone = if status == 0 { Tone::Plain } else { Tone::Look };
    let text = format!("The command `{line}` ended with status {status}.");
    Some(Block::Marked(tone, text))
}
