//! One service's part of the text.

use std::collections::BTreeMap;

use crate::outlet::report::model::{Service, TlsLibrary};
use crate::outlet::terminal::table::Table;
use crate::outlet::terminal::units::{count, counted, percent, rate, time};
use crate::outlet::terminal::{Paint, Style, bar, printable, shorten, wrap};

use super::accept_queue::accept_queue;
use super::activities::{activities, unit_costs};
use super::connections::connections;
use super::costs::{costs, negotiated, steps};
use super::hellos::hellos;
use super::sources::sources;

/// Rows of the table of what was negotiated.
pub(super) const ROWS: usize = 12;

/// What there is to say of handshakes, after how they ended.
const SECTIONS: [fn(&Service, Style) -> String; 6] =
    [steps, costs, negotiated, hellos, failures, waits];

/// The service's part, with a newline at the end.
pub(super) fn render(service: &Service, seconds: f64, style: Style) -> String {
    let mut out = head(service, style);
    out.push_str(&outcomes(service, seconds, style));
    out.push_str(&sources(service, style));
    out.push_str(&activities(service, style));
    out.push_str(&unit_costs(service, style));
    for section in SECTIONS {
        out.push_str(&section(service, style));
    }
    out.push_str(&connections(service, seconds, style));
    out.push_str(&accept_queue(service, style));
    out
}

/// How its handshakes ended, what they cost and what they were made of.
pub(super) fn handshakes(service: &Service, seconds: f64, style: Style) -> String {
    let mut out = outcomes(service, seconds, style);
    out.push_str(&sources(service, style));
    for section in SECTIONS {
        out.push_str(&section(service, style));
    }
    out
}

pub(super) fn section(title: &str, style: Style) -> String {
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
    for one in &service.tls_libraries {
        out.push_str(&library(one, style));
    }
    out
}

fn library(library: &TlsLibrary, style: Style) -> String {
    let name = format!("{} {}", library.kind, library.version);
    let line = format!("{} · {}", name.trim_end(), library.path);
    if library.state == "profiled" {
        let line = format!("{line} · {}", library.state);
        return format!("  {}\n", shorten(&printable(&line), style.width - 2));
    }
    // The reason is what the reader can act on: all of it.
    let reason = wrap(&printable(&library.state), 4, style.width);
    wrap(&printable(&line), 2, style.width) + &reason
}

fn outcomes(service: &Service, seconds: f64, style: Style) -> String {
    wrap(&outcomes_in_words(service, seconds), 2, style.width)
}

/// How its handshakes ended.
pub(in crate::outlet::report) fn outcomes_in_words(service: &Service, seconds: f64) -> String {
    let total = service.handshake_count();
    if total == 0 {
        return "No TLS handshake was seen.".to_owned();
    }
    let ended = |outcome: &str| -> u64 {
        let groups = service.handshakes.iter();
        let those = groups.filter(|group| group.outcome == outcome);
        those.map(|group| group.count).sum()
    };
    let completed = ended("completed");
    let resumed: u64 = service
        .handshakes
        .iter()
        .filter(|group| group.outcome == "completed")
        .filter(|group| !matches!(group.resumption.as_str(), "none" | "unknown"))
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
        match resumed as f64 / completed as f64 {
            0.0 => text.push_str(" None was resumed."),
            share => text.push_str(&format!(" {} were resumed.", percent(share))),
        }
    }
    text
}

/// Whether both roles occur, and so must be told.
fn both_roles(service: &Service) -> bool {
    let mut roles = service.handshakes.iter().map(|group| group.role.as_str());
    let first = roles.next();
    roles.any(|role| Some(role) != first)
}

/// The role in front of a word, where both occur.
pub(in crate::outlet::report) fn with_role(service: &Service, role: &str, what: &str) -> String {
    if both_roles(service) {
        format!("{role}: {what}")
    } else {
        what.to_owned()
    }
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

/// What was waited for.
pub(in crate::outlet::report) fn wait_in_words(reason: &str) -> &str {
    match reason {
        "run_queue" => "a free CPU",
        "lock" => "a lock",
        "disk" => "disk",
        "network" => "the network",
        "random" => "random numbers",
        "pipe" => "a pipe",
        "between_calls" => "peer or event loop",
        "other" => "something else",
        unknown => unknown,
    }
}
