//! What handshakes of one service cost: by step, for each kind, and by what was
//! negotiated.

use std::collections::BTreeMap;

use crate::document::{Block, Cell, Drawn, Shade, Table};
use tlsprof_common::units::{count, percent, time};
use tlsprof_library::lacks_steps;
use tlsprof_report::model::{
    HandshakeCost, HandshakeGroup, Outcome, Resumption, Service, Source, Step, StepCost,
};

use super::wording::{ROWS, with_role, words};

/// Parts of handshakes that socket calls tell apart.
const UP_TO_ANSWER: &str = "up to first answer";
const AFTER_ANSWER: &str = "after first answer";
/// Fewer completed handshakes than this make weak quantiles.
const WEAK: u64 = 30;

pub(super) fn steps(service: &Service) -> Option<Block> {
    let cpu = service.handshake_cpu_seconds();
    if service.steps.is_empty() || cpu <= 0.0 {
        return None;
    }
    let mut steps = parts(service);
    steps.sort_by(|a, b| b.1.cpu_seconds.total_cmp(&a.1.cpu_seconds));
    let mut table = Table::new("Handshake CPU by step")
        .words("step")
        .number("share")
        .bar("share, drawn")
        .numbers(["CPU", "per handshake"])
        .number("measured in")
        .help("handshakes in which this step was measured; the rest is extrapolated from them")
        .optional();
    for (name, step) in &steps {
        let share = step.cpu_seconds / cpu;
        let measured = count(step.measured_handshakes);
        table.row([
            with_role(service, step.role, name).into(),
            percent(share).into(),
            Cell::bar(share, Shade::Handshake),
            time(step.cpu_seconds).into(),
            time(step.cpu_seconds / step.handshakes.max(1) as f64).into(),
            format!("{measured} of {}", count(step.handshakes)).into(),
        ]);
    }
    let mut blocks = vec![table.into()];
    blocks.extend(Block::remarks(step_notes(service)));
    Some(Block::section("Handshake CPU by step", blocks))
}

/// The steps with their names; of handshakes that only socket calls showed, the two parts that
/// these tell apart.
fn parts(service: &Service) -> Vec<(String, StepCost)> {
    let steps = service.steps.iter().cloned();
    let mut parts: Vec<_> = steps.map(|one| (words(one.step.label()), one)).collect();
    for socket in &service.socket_handshakes {
        let mut steps = parts.iter_mut().map(|(_, step)| step);
        let unmeasured =
            |step: &&mut StepCost| step.role == socket.role && step.step == Step::Unmeasured;
        if let Some(rest) = steps.find(unmeasured) {
            rest.cpu_seconds = (rest.cpu_seconds - socket.cpu_seconds).max(0.0);
            rest.handshakes = rest.handshakes.saturating_sub(socket.count);
        }
        for (part, cpu_seconds) in [
            (UP_TO_ANSWER, socket.first_flight_seconds),
            (AFTER_ANSWER, socket.last_flight_seconds),
        ] {
            let step = StepCost {
                role: socket.role,
                step: Step::Unmeasured,
                cpu_seconds,
                measured_handshakes: socket.count,
                handshakes: socket.count,
            };
            parts.push((part.to_owned(), step));
        }
    }
    parts.retain(|(_, part)| part.handshakes > 0);
    parts
}

/// Says what of the steps is measured and what is estimated.
fn step_notes(service: &Service) -> Vec<String> {
    let mut notes = Vec::new();
    let named = |name| service.steps.iter().find(|step| step.step == name);
    let library = service.source != Source::SocketCalls;
    let measured = |step: &&StepCost| !matches!(step.step, Step::Unmeasured | Step::KeyDerivation);
    let sampled = service
        .steps
        .iter()
        .filter(measured)
        .filter(|s| s.measured_handshakes > 0 && s.measured_handshakes < s.handshakes)
        .max_by_key(|s| s.handshakes);
    if let Some(step) = sampled {
        notes.push(format!(
            "Measured in {} of {} handshakes; the rest is extrapolated from measured handshakes of \
             the same kind.",
            count(step.measured_handshakes),
            count(step.handshakes)
        ));
    }
    let other = named(Step::Other);
    if library
        && named(Step::KeyDerivation).is_none()
        && other.is_some_and(|other| other.measured_handshakes == 0)
    {
        notes.push("Key derivation was not measured: it is included in `other`.".to_owned());
    }
    let by_socket: u64 = service.socket_handshakes.iter().map(|one| one.count).sum();
    if by_socket > 0 {
        notes.push(
            "Socket calls show two parts: up to the first answer and after it. In a server's full \
             handshake, the first part includes key generation and the signature."
                .to_owned(),
        );
    }
    let undivided: u64 = service
        .steps
        .iter()
        .filter(|step| step.step == Step::Unmeasured)
        .map(|step| step.handshakes)
        .sum();
    if undivided > by_socket {
        notes.push(why_unmeasured(service));
    }
    notes
}

/// Why the library's handshakes have no steps.
fn why_unmeasured(service: &Service) -> String {
    let mut kinds = service.tls_libraries.iter().map(|library| &library.kind);
    match kinds.next() {
        Some(kind) if lacks_steps(kind) && kinds.all(|other| other == kind) => {
            format!("Unmeasured: tlsprof does not measure the steps of {kind}.")
        }
        _ => "Unmeasured: no handshake of that kind occurred while steps were measured.".to_owned(),
    }
}

/// The kind of a handshake.
fn resumption_in_words(kind: Resumption) -> &'static str {
    match kind {
        Resumption::None => "full",
        Resumption::Psk => "resumed (psk)",
        Resumption::SessionId => "resumed (session id)",
        Resumption::Ticket => "resumed (ticket)",
        Resumption::Abbreviated => "resumed",
        Resumption::Unknown => "unknown",
    }
}

pub(super) fn costs(service: &Service) -> Option<Block> {
    if service.handshake_costs.is_empty() {
        return None;
    }
    let mut costs: Vec<&HandshakeCost> = service.handshake_costs.iter().collect();
    costs.sort_by_key(|cost| std::cmp::Reverse(cost.count));
    let furthest = costs.iter().map(|cost| cost.cpu.p99).fold(0.0, f64::max);
    let mut table = Table::new("Distribution of CPU and wall time")
        .words("handshake")
        .numbers(["count", "CPU mean"])
        .interval("CPU, p50 to p99; mark: mean")
        .number("p50")
        .help("half of the handshakes used at most this CPU time")
        .number("p90")
        .help("9 of 10 handshakes used at most this CPU time")
        .optional()
        .number("p99")
        .help("99 of 100 handshakes used at most this CPU time")
        .numbers(["max", "wall p50"])
        .help("half of the handshakes ended within this time, waits included")
        .number("p99")
        .titled("wall p99")
        .help("99 of 100 handshakes ended within this time, waits included")
        .number("max")
        .titled("wall max")
        .optional();
    for cost in &costs {
        let (cpu, wall) = (cost.cpu, cost.duration);
        let kind = resumption_in_words(cost.resumption);
        let interval = Drawn::Interval {
            ends: [cpu.p50, cpu.mean, cpu.p99],
            span: (0.0, furthest),
        };
        let mut row = vec![
            with_role(service, cost.role, kind).into(),
            count(cost.count).into(),
            time(cpu.mean).into(),
            Cell::default().drawn(interval),
        ];
        let quantiles = [
            cpu.p50, cpu.p90, cpu.p99, cpu.max, wall.p50, wall.p99, wall.max,
        ];
        row.extend(quantiles.map(|seconds| Cell::from(time(seconds))));
        table.row(row);
    }
    let mut blocks = vec![table.into()];
    if costs.iter().any(|cost| cost.count < WEAK) {
        let note = format!("Quantiles from fewer than {WEAK} handshakes of a kind are unreliable.");
        blocks.extend(Block::remarks([note]));
    }
    Some(Block::section(
        "CPU and wall time per completed handshake",
        blocks,
    ))
}

pub(super) fn negotiated(service: &Service) -> Option<Block> {
    let table = mix(service, "Completed handshakes", true);
    (!table.rows.is_empty()).then(|| Block::section("By negotiated parameters", vec![table.into()]))
}

/// Handshakes that completed, or the others, by what was negotiated; those that took most CPU
/// time first.
pub(super) fn mix(service: &Service, caption: &'static str, completed: bool) -> Table {
    let mut kinds: BTreeMap<_, (u64, f64)> = BTreeMap::new();
    let groups = service.handshakes.iter();
    for one in groups.filter(|group| (group.outcome == Outcome::Completed) == completed) {
        let sum = kinds.entry((one.role, kind(one))).or_default();
        *sum = (sum.0 + one.count, sum.1 + one.cpu_seconds);
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    let cpu = service.handshake_cpu_seconds();
    let mut table = Table::new(format!("{caption}, most expensive first"))
        .words("key exchange")
        .words("signature")
        .words("resumption")
        .numbers(["count", "CPU mean", "share"])
        .words("version")
        .optional()
        .words("cipher")
        .optional()
        .fold(ROWS);
    for ((role, kind), (number, seconds)) in kinds {
        let [group, signature, resumption, version, cipher] = kind;
        let cells = [
            with_role(service, role, group),
            signature.to_owned(),
            words(resumption),
            count(number),
            each(seconds, number),
            share_of(seconds, cpu),
            version.to_owned(),
            cipher.to_owned(),
        ];
        table.row(cells.map(Cell::from));
    }
    table
}

/// What handshakes have in common that stand in one row, besides their role.
fn kind(of: &HandshakeGroup) -> [&str; 5] {
    [
        &of.group,
        &of.signature,
        of.resumption.label(),
        &of.version,
        &of.cipher,
    ]
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
