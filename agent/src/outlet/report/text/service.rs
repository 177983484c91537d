//! One service's part of the text.

use std::collections::BTreeMap;

use crate::outlet::report::model::{HandshakeCost, HandshakeGroup, Service, StepCost};
use crate::outlet::terminal::table::{Align, Table};
use crate::outlet::terminal::units::{count, counted, percent, rate, time};
use crate::outlet::terminal::{Paint, Style, bar, printable, shorten, wrap};

use super::{paint_lines, words};

/// Fewer completed handshakes than this make weak quantiles.
const WEAK: u64 = 30;
/// Rows of the table of what was negotiated.
const ROWS: usize = 12;

/// The service's part, with a newline at the end.
pub(super) fn render(service: &Service, seconds: f64, style: Style) -> String {
    let mut out = head(service, style);
    out.push_str(&outcomes(service, seconds, style));
    for section in [steps, costs, negotiated, failures, waits] {
        out.push_str(&section(service, style));
    }
    out
}

fn section(title: &str, style: Style) -> String {
    format!("\n  {}\n", style.paint(Paint::Bold, title))
}

fn head(service: &Service, style: Style) -> String {
    let name = printable(&service.service_name);
    let mut out = style.paint(Paint::Bold, &name);
    out.push('\n');
    let mut facts = Vec::new();
    if !service.executable.is_empty() {
        facts.push(printable(&service.executable).into_owned());
    }
    let processes = u64::from(service.processes);
    facts.push(counted(processes, "process", "processes"));
    if !service.ports.is_empty() {
        let ports: Vec<String> = service.ports.iter().map(u16::to_string).collect();
        let noun = if ports.len() == 1 { "port" } else { "ports" };
        facts.push(format!("{noun} {}", ports.join(", ")));
    }
    let cpu = service.cpu_seconds;
    facts.push(format!(
        "CPU {} (user {}, system {})",
        time(cpu.total()),
        time(cpu.user),
        time(cpu.system)
    ));
    out.push_str(&wrap(&facts.join(" · "), 2, style.width));
    for library in &service.tls_libraries {
        let name = format!("{} {}", library.kind, library.version);
        let line = format!("{} · {} · {}", name.trim_end(), library.path, library.state);
        out.push_str("  ");
        out.push_str(&shorten(&printable(&line), style.width - 2));
        out.push('\n');
    }
    out
}

fn outcomes(service: &Service, seconds: f64, style: Style) -> String {
    let total = service.handshake_count();
    if total == 0 {
        return "  No TLS handshake was seen.\n".to_owned();
    }
    let ended = |outcome: &str| -> u64 {
        let groups = service.handshakes.iter();
        let those = groups.filter(|group| group.outcome == outcome);
        those.map(|group| group.count).sum()
    };
    let completed = ended("completed");
    let full: u64 = service
        .handshakes
        .iter()
        .filter(|group| group.outcome == "completed" && group.resumption == "none")
        .map(|group| group.count)
        .sum();
    let mut text = format!(
        "{} ({}): {} completed, {} failed, {} abandoned.",
        counted(total, "handshake", "handshakes"),
        rate(total, seconds),
        count(completed),
        count(ended("failed")),
        count(ended("abandoned")),
    );
    if completed > 0 {
        let resumed = (completed - full) as f64 / completed as f64;
        match resumed {
            0.0 => text.push_str(" None was resumed."),
            share => text.push_str(&format!(" {} were resumed.", percent(share))),
        }
    }
    wrap(&text, 2, style.width)
}

/// Whether both roles occur, and so must be told.
fn both_roles(service: &Service) -> bool {
    let mut roles = service.handshakes.iter().map(|group| group.role.as_str());
    let first = roles.next();
    roles.any(|role| Some(role) != first)
}

/// The role in front of a word, where both occur.
fn with_role(service: &Service, role: &str, what: &str) -> String {
    if both_roles(service) {
        format!("{role}: {what}")
    } else {
        what.to_owned()
    }
}

fn steps(service: &Service, style: Style) -> String {
    let cpu = service.handshake_cpu_seconds();
    if service.steps.is_empty() || cpu <= 0.0 {
        return String::new();
    }
    let mut steps: Vec<&StepCost> = service.steps.iter().collect();
    steps.sort_by(|a, b| b.cpu_seconds.total_cmp(&a.cpu_seconds));
    let mut table = Table::new()
        .left("step")
        .right("share")
        .left("")
        .painted(Paint::Cyan)
        .right("CPU")
        .right("per handshake");
    for step in steps {
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

/// Says what of the steps is measured and what is estimated.
fn step_notes(service: &Service, width: usize) -> String {
    let mut out = String::new();
    let named = |name: &str| service.steps.iter().find(|step| step.step == name);
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
    if named("key_derivation").is_none()
        && other.is_some_and(|other| other.measured_handshakes == 0)
    {
        let note = "Key derivation was not measured: it is part of `other`.";
        out.push_str(&wrap(note, 4, width));
    }
    if named("unmeasured").is_some() {
        let note = "Unmeasured: no handshake of that kind came while steps were measured.";
        out.push_str(&wrap(note, 4, width));
    }
    out
}

fn resumption_in_words(label: &str) -> String {
    match label {
        "none" => "full".to_owned(),
        "psk" => "resumed (psk)".to_owned(),
        "session_id" => "resumed (session id)".to_owned(),
        "ticket" => "resumed (ticket)".to_owned(),
        "abbreviated" => "resumed".to_owned(),
        other => words(other),
    }
}

fn costs(service: &Service, style: Style) -> String {
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

fn negotiated(service: &Service, style: Style) -> String {
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
            time(seconds / *number as f64),
            percent(seconds / cpu),
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

fn completed(service: &Service) -> impl Iterator<Item = &HandshakeGroup> {
    let groups = service.handshakes.iter();
    groups.filter(|group| group.outcome == "completed")
}

fn failures(service: &Service, style: Style) -> String {
    let mut reasons: BTreeMap<(&str, u32, &str), u64> = BTreeMap::new();
    let mut unsaid: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let mut cpu = 0.0;
    for group in &service.handshakes {
        if group.outcome == "completed" {
            continue;
        }
        cpu += group.cpu_seconds;
        let mut left = group.count;
        for error in &group.errors {
            left = left.saturating_sub(error.count);
            let key = (group.role.as_str(), error.reason, error.name.as_str());
            *reasons.entry(key).or_default() += error.count;
        }
        if left > 0 {
            let key = (group.role.as_str(), group.outcome.as_str());
            *unsaid.entry(key).or_default() += left;
        }
    }
    let mut rows: Vec<(u64, String)> = Vec::new();
    for ((role, reason, name), number) in reasons {
        let what = format!("{} (reason {reason})", printable(name));
        rows.push((number, with_role(service, role, &what)));
    }
    for ((role, outcome), number) in unsaid {
        let what = if outcome == "abandoned" {
            "abandoned: the connection ended before the handshake did"
        } else {
            "failed without a reason from the library"
        };
        rows.push((number, with_role(service, role, what)));
    }
    if rows.is_empty() {
        return String::new();
    }
    rows.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    let mut table = Table::new().right("").painted(Paint::Yellow).left("");
    for (number, what) in rows.into_iter().take(ROWS) {
        table.row([count(number), what]);
    }
    let title = format!("Handshakes that did not complete ({} of CPU)", time(cpu));
    section(&title, style) + &table.render(style, 4)
}

fn waits(service: &Service, style: Style) -> String {
    if service.waits.is_empty() {
        return String::new();
    }
    let total: f64 = service.waits.iter().map(|wait| wait.seconds).sum();
    let mut waits: Vec<_> = service.waits.iter().collect();
    waits.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let mut table = Table::new()
        .left("waiting for")
        .right("share")
        .left("")
        .painted(Paint::Cyan)
        .right("time")
        .right("per handshake");
    for wait in waits {
        let share = wait.seconds / total;
        let groups = service.handshakes.iter();
        let alike = groups.filter(|group| group.role == wait.role);
        let handshakes: u64 = alike.map(|group| group.count).sum();
        table.row([
            with_role(service, &wait.role, wait_in_words(&wait.reason)),
            percent(share),
            bar(share, (style.width / 4).min(36)),
            time(wait.seconds),
            time(wait.seconds / handshakes.max(1) as f64),
        ]);
    }
    section("Time off the CPU, from first call to end", style) + &table.render(style, 4)
}

fn wait_in_words(reason: &str) -> &str {
    match reason {
        "run_queue" => "a free CPU",
        "lock" => "a lock",
        "disk" => "disk",
        "network" => "the network",
        "random" => "random numbers",
        "between_calls" => "peer or event loop",
        "other" => "something else",
        unknown => unknown,
    }
}
