//! What handshakes of one service cost: by step, for each kind, and by what was
//! negotiated.

use std::collections::BTreeMap;

use crate::outlet::report::model::{HandshakeCost, HandshakeGroup, Service, StepCost};
use crate::outlet::terminal::table::{Align, Table};
use crate::outlet::terminal::units::{count, percent, time};
use crate::outlet::terminal::{Paint, Style, bar, wrap};

use super::service::{ROWS, section, with_role};
use super::{paint_lines, words};

/// Parts of handshakes that socket calls tell apart.
const UP_TO_ANSWER: &str = "up to first answer";
const AFTER_ANSWER: &str = "after first answer";
/// Fewer completed handshakes than this make weak quantiles.
const WEAK: u64 = 30;
pub(super) fn steps(service: &Service, style: Style) -> String {
    let cpu = service.handshake_cpu_seconds();
    if service.steps.is_empty() || cpu <= 0.0 {
        return String::new();
    }
    let mut steps = parts(service);
    steps.sort_by(|a, b| b.cpu_seconds.total_cmp(&a.cpu_seconds));
    let mut table = Table::new()
        .left("step")
        .right("share")
        .left("")
        .painted(Paint::Cyan)
        .right("CPU")
        .right("per handshake");
    for step in &steps {
        let share = step.cpu_seconds / cpu;
        table.row([
            with_role(service, &step.role, &words(&step.step)),
            percent(share),
            bar(share, (style.width / 4).min(36)),
            time(step.cpu_seconds),
            time(step.cpu_seconds / step.handshakes.max(1) as f64),
        ]);
    }
    let mut out = section("Where the CPU time of handshakes goes", style);
    out.push_str(&table.render(style, 4));
    out.push_str(&paint_lines(
        style,
        Paint::Dim,
        &step_notes(service, style.width),
    ));
    out
}

/// The steps; of handshakes that only socket calls showed, the two parts that
/// these tell apart.
pub(in crate::outlet::report) fn parts(service: &Service) -> Vec<StepCost> {
    let mut parts = service.steps.clone();
    for socket in &service.socket_handshakes {
        let unmeasured = parts
            .iter_mut()
            .find(|step| step.role == socket.role && step.step == "unmeasured");
        if let Some(rest) = unmeasured {
            rest.cpu_seconds = (rest.cpu_seconds - socket.cpu_seconds).max(0.0);
            rest.handshakes = rest.handshakes.saturating_sub(socket.count);
        }
        for (part, cpu_seconds) in [
            (UP_TO_ANSWER, socket.first_flight_seconds),
            (AFTER_ANSWER, socket.last_flight_seconds),
        ] {
            parts.push(StepCost {
                role: socket.role.clone(),
                step: part.to_owned(),
                cpu_seconds,
                measured_handshakes: socket.count,
                handshakes: socket.count,
            });
        }
    }
    parts.retain(|part| part.handshakes > 0);
    parts
}

/// Says what of the steps is measured and what is estimated.
fn step_notes(service: &Service, width: usize) -> String {
    let mut out = String::new();
    let named = |name: &str| service.steps.iter().find(|step| step.step == name);
    let library = service.source != "socket_calls";
    let measured = |step: &&StepCost| step.step != "unmeasured" && step.step != "key_derivation";
    let sampled = service
        .steps
        .iter()
        .filter(measured)
        .filter(|s| s.measured_handshakes > 0 && s.measured_handshakes < s.handshakes)
        .max_by_key(|s| s.handshakes);
    if let Some(step) = sampled {
        let note = format!(
            "Measured in {} of {} handshakes; the others are divided like those of their kind.",
            count(step.measured_handshakes),
            count(step.handshakes)
        );
        out.push_str(&wrap(&note, 4, width));
    }
    let other = named("other");
    if library
        && named("key_derivation").is_none()
        && other.is_some_and(|other| other.measured_handshakes == 0)
    {
        let note = "Key derivation was not measured: it is part of `other`.";
        out.push_str(&wrap(note, 4, width));
    }
    let by_socket: u64 = service.socket_handshakes.iter().map(|one| one.count).sum();
    if by_socket > 0 {
        let note = "Up to and after the first answer: what socket calls tell apart. In a full \
                    handshake of a server, the first part holds key generation and signature.";
        out.push_str(&wrap(note, 4, width));
    }
    let undivided: u64 = service
        .steps
        .iter()
        .filter(|step| step.step == "unmeasured")
        .map(|step| step.handshakes)
        .sum();
    if undivided > by_socket {
        let note = "Unmeasured: no handshake of that kind came while steps were measured.";
        out.push_str(&wrap(note, 4, width));
    }
    out
}

/// The kind of a handshake.
pub(in crate::outlet::report) fn resumption_in_words(label: &str) -> String {
    match label {
        "none" => "full".to_owned(),
        "psk" => "resumed (psk)".to_owned(),
        "session_id" => "resumed (session id)".to_owned(),
        "ticket" => "resumed (ticket)".to_owned(),
        "abbreviated" => "resumed".to_owned(),
        other => words(other),
    }
}

pub(super) fn costs(service: &Service, style: Style) -> String {
    if service.handshake_costs.is_empty() {
        return String::new();
    }
    let mut costs: Vec<&HandshakeCost> = service.handshake_costs.iter().collect();
    costs.sort_by_key(|cost| std::cmp::Reverse(cost.count));
    let mut table = Table::new()
        .left("handshake")
        .right("count")
        .right("CPU mean")
        .right("p50")
        .optional("p90", Align::Right)
        .right("p99")
        .right("max")
        .right("wall p50")
        .right("p99")
        .optional("max", Align::Right);
    for cost in &costs {
        let (cpu, wall) = (cost.cpu, cost.duration);
        let kind = resumption_in_words(&cost.resumption);
        table.row([
            with_role(service, &cost.role, &kind),
            count(cost.count),
            time(cpu.mean),
            time(cpu.p50),
            time(cpu.p90),
            time(cpu.p99),
            time(cpu.max),
            time(wall.p50),
            time(wall.p99),
            time(wall.max),
        ]);
    }
    let mut out = section("Cost of one completed handshake", style);
    out.push_str(&table.render(style, 4));
    if costs.iter().any(|cost| cost.count < WEAK) {
        let note = format!("Fewer than {WEAK} handshakes of a kind make weak quantiles.");
        out.push_str(&paint_lines(
            style,
            Paint::Dim,
            &wrap(&note, 4, style.width),
        ));
    }
    out
}

/// What handshakes have in common in the table of what was negotiated.
type Kind<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, &'a str);

pub(super) fn negotiated(service: &Service, style: Style) -> String {
    let mut kinds: BTreeMap<Kind<'_>, (u64, f64)> = BTreeMap::new();
    for group in completed(service) {
        let kind = (
            group.role.as_str(),
            group.group.as_str(),
            group.signature.as_str(),
            group.resumption.as_str(),
            group.version.as_str(),
            group.cipher.as_str(),
        );
        let sum = kinds.entry(kind).or_default();
        *sum = (sum.0 + group.count, sum.1 + group.cpu_seconds);
    }
    if kinds.is_empty() {
        return String::new();
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    let cpu = service.handshake_cpu_seconds();
    let mut table = Table::new()
        .left("key exchange")
        .left("signature")
        .left("resumption")
        .right("count")
        .right("CPU each")
        .right("share")
        .optional("version", Align::Left)
        .optional("cipher", Align::Left);
    for ((role, group, signature, resumption, version, cipher), (number, seconds)) in
        kinds.iter().take(ROWS)
    {
        table.row([
            with_role(service, role, group),
            (*signature).to_owned(),
            words(resumption),
            count(*number),
            each(*seconds, *number),
            share_of(*seconds, cpu),
            (*version).to_owned(),
            (*cipher).to_owned(),
        ]);
    }
    let mut out = section("By what was negotiated", style);
    out.push_str(&table.render(style, 4));
    if let Some(more) = kinds.len().checked_sub(ROWS).filter(|more| *more > 0) {
        out.push_str(&format!(
            "    and {more} more, each cheaper (all are in the JSON)\n"
        ));
    }
    out
}

/// CPU time of one; of none it is not known.
fn each(seconds: f64, handshakes: u64) -> String {
    if handshakes == 0 {
        return "-".to_owned();
    }
    time(seconds / handshakes as f64)
}

fn share_of(seconds: f64, all: f64) -> String {
    if all > 0.0 {
        percent(seconds / all)
    } else {
        "-".to_owned()
    }
}

fn completed(service: &Service) -> impl Iterator<Item = &HandshakeGroup> {
    let groups = service.handshakes.iter();
    groups.filter(|group| group.outcome == "completed")
}
