//! The report of one profile: a document for people, JSON for programs.

mod accept_queue;
mod activities;
mod connections;
mod costs;
mod finding_lines;
mod findings;
mod headline;
mod hellos;
pub mod json;
pub mod losses;
mod primitives;
mod sampled_steps;
mod service;
mod shares;
mod sources;
pub mod summary;
#[cfg(test)]
mod tests;
mod wording;

use std::collections::BTreeSet;

use crate::document::{Block, Cell, Document, Figure, Shade, Table, anchor, html, text as plain};
use crate::terminal::Style;
use tlsprof_common::units::{count, counted, time};
use tlsprof_report::model::{Report, Resumption, Role, Service, Source};

pub(super) use connections::connections;
pub(crate) use finding_lines::FindingLines;
pub(super) use findings::finding;
pub(super) use service::handshakes;
pub(super) use wording::words;

/// Services in the overview, and those shown in detail, where there is little room.
const OVERVIEW: usize = 15;
const DETAILED: usize = 5;
/// Services with less than this share of the CPU time are folded.
const MINOR: f64 = 0.01;

/// The report as text, with a newline at the end; `verbose`: with how estimates were made.
pub fn text(report: &Report, style: Style, verbose: bool) -> String {
    plain::render(&document(report), style, verbose)
}

/// The report as a page.
pub fn html(report: &Report) -> String {
    html::render(&document(report))
}

fn document(report: &Report) -> Document {
    let mut main = Vec::new();
    main.extend(findings::findings(report));
    main.push(overview(report));
    let seconds = report.duration_seconds;
    let shown = report.services.iter().filter(|one| is_shown(report, one));
    let sections = shown
        .enumerate()
        .map(|(at, one)| (is_minor(report, one), service::section(one, at, seconds)));
    let (minor, major): (Vec<_>, Vec<_>) = sections.partition(|(is_minor, _)| *is_minor);
    let mut sections: Vec<Block> = major.into_iter().map(|(_, section)| section).collect();
    let rest = sections.split_off(sections.len().min(DETAILED));
    main.extend(sections);
    main.push(Block::Fold(rest, Vec::new()));
    main.extend(folded(
        minor.into_iter().map(|(_, section)| section).collect(),
    ));
    main.extend(findings::pages(report));
    Document {
        title: format!("tlsprof: {}", report.host.hostname),
        about: circumstances(report),
        head: head(report),
        main,
        foot: vec![foot(report)],
    }
}

/// Services that did something; the only one in any case.
fn is_shown(report: &Report, service: &Service) -> bool {
    let seen = service.handshake_count() > 0
        || service.connection_count() > 0
        || activities::has_tls(service);
    seen || report.services.len() == 1
}

/// Whether a service used next to none of the CPU time, or only connects to others while there
/// are servers: a load generator on the same host. The first is what the headline is about.
fn is_minor(report: &Report, service: &Service) -> bool {
    let mut services = report.services.iter();
    if services.next() == Some(service) {
        return false;
    }
    let all: f64 = report
        .services
        .iter()
        .map(|one| one.cpu_seconds.total())
        .sum();
    service.cpu_seconds.total() < MINOR * all || is_client(service)
}

/// Whether a service listens nowhere, and was a client in all that was seen.
fn is_client(service: &Service) -> bool {
    let connections = service.connections.iter().map(|one| one.role);
    let handshakes = service.handshakes.iter().map(|one| one.role);
    let roles: BTreeSet<Role> = connections.chain(handshakes).collect();
    service.ports.is_empty() && roles == BTreeSet::from([Role::Client])
}

fn folded(sections: Vec<Block>) -> Option<Block> {
    let title = format!(
        "{} with less than 1% of the CPU time, or only as clients",
        counted(sections.len() as u64, "service", "services")
    );
    (!sections.is_empty()).then_some(Block::Details(title, sections))
}

/// Where, when and how long.
fn circumstances(report: &Report) -> String {
    let host = &report.host;
    format!(
        "{} · Linux {} · {} · {} from {} UTC",
        host.hostname,
        host.kernel,
        counted(u64::from(host.cpus), "CPU", "CPUs"),
        time(report.duration_seconds),
        report.started_at.trim_end_matches('Z').replace('T', " "),
    )
}

fn head(report: &Report) -> Vec<Block> {
    let mut head = headline::answer(report);
    head.extend(headline::command(report));
    head.extend(losses::losses(report));
    head.extend(key_figures(report));
    head
}

/// The figures that most readers came for.
fn key_figures(report: &Report) -> Option<Block> {
    let first = report.services.first()?;
    if first.handshake_count() == 0 {
        return None;
    }
    let figure = |name, value, remark: &str| Figure {
        name,
        value,
        remark: remark.to_owned(),
    };
    let share = shares::share(first).map(|_| shares::in_words(first));
    let by_request = activities::by_request(first);
    let mut costs = first.handshake_costs.iter();
    let full = costs.find(|cost| cost.resumption == Resumption::None);
    let figures = [
        share.map(|share| figure("handshakes", share, "of its CPU")),
        by_request.map(|(each, _)| figure("CPU per request", time(each), "everything included")),
        full.map(|cost| {
            let mean = shares::at_least(first, time(cost.cpu.mean));
            figure("a full handshake", mean, "of CPU, on average")
        }),
        Some(figure(
            "handshakes seen",
            count(first.handshake_count()),
            &first.service_name,
        )),
    ];
    Some(Block::Figures(figures.into_iter().flatten().collect()))
}

fn overview(report: &Report) -> Block {
    if report.services.is_empty() {
        return Block::Text("No service was profiled.".to_owned());
    }
    let mut table = Table::new("Handshakes of each service, and their share of its CPU")
        .words("service")
        .number("CPU")
        .help("CPU time of the service's processes during the profile, as the kernel accounts it")
        .number("handshakes")
        .number("handshake CPU")
        .help("CPU time in TLS handshakes, from the first call to the end")
        .number("share")
        .help("handshake CPU divided by the service's CPU")
        .bar("share, drawn")
        .fold(OVERVIEW);
    let mut shown = 0..;
    for service in &report.services {
        let mut name = Cell::from(&service.service_name);
        if is_shown(report, service) {
            name.link = shown.next().map(|at| anchor("service", at));
        }
        table.row([
            name,
            time(service.cpu_seconds.total()).into(),
            count(service.handshake_count()).into(),
            shares::at_least(service, time(service.handshake_cpu_seconds())).into(),
            shares::in_words(service).into(),
            Cell::bar(shares::share(service).unwrap_or(0.0), Shade::Handshake),
        ]);
    }
    Block::section("Services", vec![table.into()])
}

/// What a reader must know to judge the figures.
fn foot(report: &Report) -> Block {
    let mut notes = vec![headline::own_cost(report)];
    let services = report.services.iter();
    let with_handshakes = services.filter(|one| one.handshake_cpu_seconds() > 0.0);
    let sources: Vec<Source> = with_handshakes.map(|one| one.source).collect();
    if sources.contains(&Source::LibraryProbes) || sources.contains(&Source::Both) {
        notes.push(
            "Handshakes come from probes in the TLS library, unless stated otherwise.".to_owned(),
        );
    }
    if !sources.is_empty() {
        notes.push(
            "CPU time of handshakes is measured, not sampled: it excludes off-CPU time, and includes \
             interrupts that hit the thread and the overhead of probes."
                .to_owned(),
        );
    }
    notes.extend(losses::harmless(report));
    notes.extend(report.services.iter().filter_map(shares::disagreement));
    notes.extend(activities::notes(report));
    notes.extend(report.notes.iter().cloned());
    notes.push(format!("Made by tlsprof {}.", report.tlsprof_version));
    Block::section("How this was measured", Block::remarks(notes).collect())
}
