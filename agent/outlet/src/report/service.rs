//! One service's part of the report.

use std::collections::BTreeMap;

use crate::document::{Block, Cell, Fact, Section, Shade, Table, Tone, anchor};
use tlsprof_common::units::{count, counted, percent, rate, time};
use tlsprof_report::model::{
    HandshakeGroup, Outcome, Resumption, Role, Service, TlsLibrary, Witness,
};

use super::activities::{activities, unit_costs};
use super::connections::connections;
use super::costs::{costs, mix, negotiated, steps};
use super::hellos::hellos;
use super::primitives::primitives;
use super::sampled_steps::sampled_steps;
use super::sources::sources;
use super::wording::{ROWS, with_role};

/// The service's part.
pub(super) fn section(service: &Service, at: usize, seconds: f64) -> Block {
    let mut blocks = vec![Block::Facts(facts(service))];
    blocks.extend(outcomes_and_sources(service, seconds));
    blocks.extend(activities(service));
    blocks.extend(primitives(service));
    blocks.extend(unit_costs(service));
    blocks.extend(parts(service));
    blocks.extend(connections(service, seconds));
    Block::Section(Section {
        title: service.service_name.clone(),
        anchor: Some(anchor("service", at)),
        blocks,
    })
}

/// How its handshakes ended, what they cost and what they were made of.
pub(crate) fn handshakes(service: &Service, seconds: f64) -> Vec<Block> {
    let mut blocks = outcomes_and_sources(service, seconds);
    blocks.extend(parts(service));
    blocks
}

fn outcomes_and_sources(service: &Service, seconds: f64) -> Vec<Block> {
    let outcomes = Block::Text(outcomes(service, seconds));
    [outcomes].into_iter().chain(sources(service)).collect()
}

/// What there is to say of handshakes, after how they ended.
fn parts(service: &Service) -> Vec<Block> {
    let mut blocks = Vec::new();
    blocks.extend(steps(service));
    blocks.extend(sampled_steps(service));
    blocks.extend(costs(service));
    blocks.extend(negotiated(service));
    blocks.extend(hellos(service));
    blocks.extend(failures(service));
    blocks.extend(waits(service));
    blocks
}

fn facts(service: &Service) -> Vec<Vec<Fact>> {
    let mut facts = Vec::new();
    if !service.executable.is_empty() {
        facts.push(Fact::Code(service.executable.clone()));
    }
    let processes = u64::from(service.processes);
    facts.push(Fact::Words(counted(processes, "process", "processes")));
    if !service.ports.is_empty() {
        let ports: Vec<String> = service.ports.iter().map(u16::to_string).collect();
        let noun = if ports.len() == 1 { "port" } else { "ports" };
        facts.push(Fact::Words(format!("{noun} {}", ports.join(", "))));
    }
    let cpu = service.cpu_seconds;
    facts.push(Fact::Words(format!(
        "CPU {} (user {}, system {})",
        time(cpu.total()),
        time(cpu.user),
        time(cpu.system)
    )));
    let library = |one: &TlsLibrary| {
        let name = format!("{} {}", one.kind, one.version);
        vec![
            Fact::Words(name.trim_end().to_owned()),
            Fact::Code(one.path.clone()),
            Fact::Words(one.state.clone()),
        ]
    };
    let libraries = service.tls_libraries.iter().map(library);
    [facts].into_iter().chain(libraries).collect()
}

/// How its handshakes ended.
fn outcomes(service: &Service, seconds: f64) -> String {
    let total = service.handshake_count();
    if total == 0 {
        return "No TLS handshake was seen.".to_owned();
    }
    let ended = |outcome| -> u64 {
        let groups = service.handshakes.iter();
        let those = groups.filter(|group| group.outcome == outcome);
        those.map(|group| group.count).sum()
    };
    let completed = ended(Outcome::Completed);
    let mut text = format!(
        "{} ({}): {} completed, {} failed, {} abandoned.",
        counted(total, "handshake", "handshakes"),
        rate(total, seconds),
        count(completed),
        count(ended(Outcome::Failed)),
        count(ended(Outcome::Abandoned)),
    );
    if completed > 0 {
        text.push_str(&resumed(service, completed));
    }
    text
}

/// How many of its completed handshakes were resumed, of those of which it is known.
fn resumed(service: &Service, completed: u64) -> String {
    let sum = |wanted: fn(Resumption) -> bool| -> u64 {
        let groups = service.handshakes.iter();
        let those = groups.filter(|group| group.outcome == Outcome::Completed);
        let those = those.filter(|group| wanted(group.resumption));
        those.map(|group| group.count).sum()
    };
    let (resumed, unknown) = (
        sum(Resumption::is_one),
        sum(|one| one == Resumption::Unknown),
    );
    let known = completed - unknown;
    let share = || percent(resumed as f64 / known as f64);
    match (known, unknown, resumed) {
        (0, ..) => " How many were resumed is unknown.".to_owned(),
        (_, 0, 0) => " None was resumed.".to_owned(),
        (_, 0, _) => format!(" {} were resumed.", share()),
        _ => format!(
            " {} of the {} whose resumption is known were resumed.",
            share(),
            count(known)
        ),
    }
}

/// How handshakes ended for which the library gave no reason.
fn end_in_words(group: &HandshakeGroup) -> &'static str {
    match (group.outcome, group.source) {
        (Outcome::Abandoned, _) => "abandoned: the connection ended before the handshake did",
        _ if group.may_hide_its_alert() => {
            "failed by an alert (named under Cleartext alerts, unless TLS 1.3 encrypted it)"
        }
        (_, Witness::Socket) => "failed by an alert",
        _ => "failed, no reason from the library",
    }
}

fn failures(service: &Service) -> Option<Block> {
    let mut reasons: BTreeMap<(Role, u32, &str), u64> = BTreeMap::new();
    let mut unsaid: BTreeMap<(Role, &str), u64> = BTreeMap::new();
    let mut cpu = 0.0;
    for group in &service.handshakes {
        if group.outcome == Outcome::Completed {
            continue;
        }
        cpu += group.cpu_seconds;
        let mut left = group.count;
        for error in &group.errors {
            left = left.saturating_sub(error.count);
            let key = (group.role, error.reason, error.name.as_str());
            *reasons.entry(key).or_default() += error.count;
        }
        if left > 0 {
            let key = (group.role, end_in_words(group));
            *unsaid.entry(key).or_default() += left;
        }
    }
    let mut rows: Vec<(u64, String)> = Vec::new();
    for ((role, reason, name), number) in reasons {
        let what = format!("{name} (reason {reason})");
        rows.push((number, with_role(service, role, &what)));
    }
    for ((role, what), number) in unsaid {
        rows.push((number, with_role(service, role, what)));
    }
    if rows.is_empty() {
        return None;
    }
    rows.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    let mut table = Table::new("By the reason given by the library or the peer")
        .number("")
        .titled("count")
        .words("")
        .titled("reason")
        .fold(ROWS);
    for (number, what) in rows {
        table.row([Cell::from(count(number)).tone(Tone::Look), what.into()]);
    }
    let mix = mix(service, "Handshakes that did not complete", false);
    let blocks = vec![table.into(), Block::Fold(vec![mix.into()], Vec::new())];
    let title = format!("Handshakes that did not complete ({} of CPU)", time(cpu));
    Some(Block::section(title, blocks))
}

fn waits(service: &Service) -> Option<Block> {
    let total: f64 = service.waits.iter().map(|wait| wait.seconds).sum();
    if service.waits.is_empty() {
        return None;
    }
    let mut waits: Vec<_> = service.waits.iter().collect();
    waits.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let mut table = Table::new("Total over all handshakes")
        .words("waiting for")
        .number("share")
        .bar("share, drawn")
        .number("time")
        .number("per handshake");
    for wait in waits {
        let share = wait.seconds / total;
        let groups = service.handshakes.iter();
        let alike = groups.filter(|group| group.role == wait.role);
        let handshakes: u64 = alike.map(|group| group.count).sum();
        table.row([
            with_role(service, wait.role, wait.reason.words()).into(),
            percent(share).into(),
            Cell::bar(share, Shade::Application),
            time(wait.seconds).into(),
            time(wait.seconds / handshakes.max(1) as f64).into(),
        ]);
    }
    let title = "Off-CPU time from the first call to the end";
    Some(Block::section(title, vec![table.into()]))
}
