//! The report as text for a terminal: the answer first, then its evidence.

mod accept_queue;
pub(super) mod activities;
pub(super) mod connections;
pub(super) mod costs;
pub(super) mod findings;
mod hellos;
pub mod losses;
pub(super) mod service;
mod shares;
mod sources;

use std::fmt::Write;

use crate::outlet::terminal::table::Table;
use crate::outlet::terminal::units::{bytes, count, counted, percent, time};
use crate::outlet::terminal::{Paint, Style, bar, printable, wrap};

use super::model::{Finding, Report, Service};
pub(in crate::outlet::report) use shares::share;

/// Services in the overview; the JSON has all.
const OVERVIEW: usize = 15;
/// Services shown in detail.
const DETAILED: usize = 5;

/// The report as text, with a newline at the end.
pub fn render(report: &Report, style: Style) -> String {
    let mut out = String::new();
    out.push_str(&answer(report, style));
    out.push_str(&losses::losses(report, style));
    out.push_str(&findings::findings(report, style));
    out.push('\n');
    out.push_str(&style.paint(Paint::Dim, &circumstances(report)));
    out.push_str("\n\n");
    out.push_str(&overview(report, style));
    for service in report.services.iter().take(DETAILED) {
        let seen = service.handshake_count() > 0
            || service.connection_count() > 0
            || activities::has_tls(service);
        if seen || report.services.len() == 1 {
            out.push('\n');
            out.push_str(&service::render(service, report.duration_seconds, style));
        }
    }
    out.push('\n');
    out.push_str(&own_cost(report, style));
    out.push_str(&notes(report, style));
    out
}

/// What is known of a service's handshakes, but for its CPU time as a whole: one part of
/// its text.
pub fn handshakes(service: &Service, seconds: f64, style: Style) -> String {
    service::handshakes(service, seconds, style)
}

/// What is known of a service's TCP connections; empty if it had none.
pub fn connections(service: &Service, seconds: f64, style: Style) -> String {
    connections::connections(service, seconds, style) + &accept_queue::accept_queue(service, style)
}

/// One finding with its evidence and remedy, under a number.
pub fn finding(number: usize, finding: &Finding, style: Style) -> String {
    findings::one(number, finding, style)
}

fn answer(report: &Report, style: Style) -> String {
    let text = headline(report);
    text.map_or_else(
        || silence(report, style),
        |text| paint_lines(style, Paint::Bold, &wrap(&text, 0, style.width)),
    )
}

/// Which service spends how much of its CPU on handshakes; None where there were none.
pub(super) fn headline(report: &Report) -> Option<String> {
    let first = report
        .services
        .first()
        .filter(|s| s.handshake_count() > 0)?;
    let name = printable(&first.service_name);
    let cpu = first.handshake_cpu_seconds();
    let handshakes = counted(first.handshake_count(), "TLS handshake", "TLS handshakes");
    let mut text = share(first).map_or_else(
        || format!("{name} spent {} of CPU on {handshakes}.", time(cpu)),
        |share| {
            format!(
                "{name} spends {} of its CPU on TLS handshakes: {} of {}, {handshakes}.",
                percent(share),
                time(cpu),
                time(first.cpu_seconds.total()),
            )
        },
    );
    if let Some((step, share)) = dearest_step(first) {
        let _ = write!(
            text,
            " The dearest step is {step}: {} of it.",
            percent(share)
        );
    }
    if let Some(share) = activities::encryption(first) {
        let _ = write!(text, " Encryption takes {}.", percent(share));
    }
    if let Some((cpu, requests)) = activities::by_request(first) {
        let _ = write!(
            text,
            " A request takes {} of CPU, all in ({}).",
            time(cpu),
            counted(requests, "request", "requests")
        );
    }
    Some(text)
}

/// What is said where there was no handshake.
pub(super) fn silent_headline(report: &Report) -> String {
    format!(
        "No TLS handshake was seen in {}.",
        time(report.duration_seconds)
    )
}

/// What to check then.
pub(super) const CHECKS: [&str; 4] = [
    "Did a client open a new TLS connection? Connections that were open before make no \
         handshakes.",
    "Is the service listed by `tlsprof list`, with a TLS library that is marked ✓?",
    "Is its TLS library one that this version profiles? `tlsprof list --verbose` gives the \
         reason where it is not.",
    "Do the capabilities work here? `tlsprof doctor` tells.",
];

fn silence(report: &Report, style: Style) -> String {
    let mut out = style.paint(Paint::Bold, &silent_headline(report));
    out.push_str("\nWhat to check:\n");
    for check in CHECKS {
        let lines = wrap(check, 4, style.width);
        out.push_str("  - ");
        out.push_str(lines.trim_start());
    }
    out
}

/// The dearest step of a service and its share of the handshakes' CPU time.
fn dearest_step(service: &Service) -> Option<(String, f64)> {
    let named = service
        .steps
        .iter()
        .filter(|step| step.step != "unmeasured" && step.step != "other");
    let dearest = named.max_by(|a, b| a.cpu_seconds.total_cmp(&b.cpu_seconds))?;
    let share = dearest.cpu_seconds / service.handshake_cpu_seconds();
    Some((words(&dearest.step), share))
}

/// A label in words: `key_exchange` is `key exchange`, abbreviations are upper case.
pub fn words(label: &str) -> String {
    match label {
        "socket_io" => "socket I/O".to_owned(),
        "tcp_open" | "tcp_close" => label.replace("tcp_", "TCP "),
        _ => label.replace('_', " ").replace("rsa", "RSA"),
    }
}

/// Where, when and how long.
pub(super) fn circumstances(report: &Report) -> String {
    let host = &report.host;
    format!(
        "{} · Linux {} · {} · {} from {}",
        printable(&host.hostname),
        printable(&host.kernel),
        counted(u64::from(host.cpus), "CPU", "CPUs"),
        time(report.duration_seconds),
        printable(report.started_at.trim_end_matches('Z')).replace('T', " ") + " UTC",
    )
}

fn overview(report: &Report, style: Style) -> String {
    if report.services.is_empty() {
        return "No service was profiled.\n".to_owned();
    }
    let bar_width = (style.width / 8).min(14);
    let mut table = Table::new()
        .left("service")
        .right("CPU")
        .right("handshakes")
        .right("their CPU")
        .right("share")
        .left("")
        .painted(Paint::Cyan);
    for service in report.services.iter().take(OVERVIEW) {
        let share = share(service);
        table.row([
            printable(&service.service_name).into_owned(),
            time(service.cpu_seconds.total()),
            count(service.handshake_count()),
            time(service.handshake_cpu_seconds()),
            share.map_or_else(|| "-".to_owned(), percent),
            bar(share.unwrap_or(0.0), bar_width),
        ]);
    }
    let mut out = table.render(style, 2);
    if let Some(more) = report
        .services
        .len()
        .checked_sub(OVERVIEW)
        .filter(|n| *n > 0)
    {
        let _ = writeln!(out, "  and {more} more (all are in the JSON)");
    }
    out
}

/// What the profile cost.
pub(super) fn own_cost_in_words(report: &Report) -> String {
    let agent = &report.agent;
    let targets: f64 = report.services.iter().map(|s| s.cpu_seconds.total()).sum();
    let of_targets = if targets > 0.0 {
        format!(
            " ({} of these services' CPU)",
            percent(agent.profiled_seconds / targets)
        )
    } else {
        String::new()
    };
    format!(
        "tlsprof itself took {} of CPU and {}. Its probes in these services, and its hooks on the whole \
         host, took about {}{of_targets}; what they push out of the caches is not in it.",
        time(agent.cpu_seconds),
        bytes(agent.memory_bytes),
        time(agent.profiled_seconds),
    )
}

/// How the command ended, if there was one.
pub(super) fn command_in_words(report: &Report) -> Option<String> {
    let command = report.command.as_ref()?;
    let line = command.arguments.join(" ");
    let status = command.exit_status;
    Some(format!(
        "The command `{}` ended with status {status}.",
        printable(&line)
    ))
}

fn own_cost(report: &Report, style: Style) -> String {
    let mut out = wrap(&own_cost_in_words(report), 0, style.width);
    if let Some((command, told)) = report.command.as_ref().zip(command_in_words(report)) {
        let status = command.exit_status;
        let paint = if status == 0 {
            Paint::Dim
        } else {
            Paint::Yellow
        };
        let text = wrap(&told, 0, style.width);
        out.push_str(&paint_lines(style, paint, &text));
    }
    out
}

/// What a reader must know to judge the figures.
pub(super) fn notes_in_words(report: &Report) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let handshakes: f64 = report
        .services
        .iter()
        .map(Service::handshake_cpu_seconds)
        .sum();
    if handshakes > 0.0 {
        notes.push(format!(
            "Source, where nothing else is said: probes in the TLS library. CPU time is exact: time off the CPU is taken \
             out; interrupts that hit the thread are in, and the probes themselves, about {}.",
            percent(report.agent.profiled_seconds / handshakes)
        ));
    }
    for loss in &report.losses {
        if !losses::is_serious(loss) {
            notes.push(format!(
                "{} {}.",
                count(loss.count),
                losses::loss_in_words(&loss.reason)
            ));
        }
    }
    notes.extend(report.services.iter().filter_map(shares::disagreement));
    notes.extend(activities::notes(report));
    notes.extend(report.notes.iter().map(|note| printable(note).into_owned()));
    notes
}

fn notes(report: &Report, style: Style) -> String {
    let mut out = String::new();
    for note in notes_in_words(report) {
        out.push_str(&paint_lines(
            style,
            Paint::Dim,
            &wrap(&note, 0, style.width),
        ));
    }
    out
}

/// Paints line by line: an emphasis over a line's end would colour a pager's
/// next line.
pub(super) fn paint_lines(style: Style, paint: Paint, lines: &str) -> String {
    let mut out = String::new();
    for line in lines.lines() {
        out.push_str(&style.paint(paint, line));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::outlet::terminal::golden;

    #[test]
    fn snapshot_at_80_columns() {
        let text = render(&sample::report(), Style::plain(80));
        golden::snapshot("report-80.txt", &text);
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn snapshot_at_120_columns() {
        let text = render(&sample::report(), Style::plain(120));
        golden::snapshot("report-120.txt", &text);
        assert!(text.lines().all(|line| line.chars().count() <= 120));
    }

    #[test]
    fn snapshot_with_losses_and_a_command() {
        let text = render(&sample::lossy_report(), Style::plain(80));
        golden::snapshot("report-lossy.txt", &text);
    }

    #[test]
    fn snapshot_of_silence() {
        let text = render(&sample::silent_report(), Style::plain(80));
        golden::snapshot("report-silent.txt", &text);
    }

    #[test]
    fn the_whole_reason_of_a_library_without_probes_is_shown() {
        let reason = format!(
            "not profiled: {}",
            "process 20 (qemu) is the reason ".repeat(5)
        );
        let mut report = sample::report();
        for library in report
            .services
            .iter_mut()
            .flat_map(|s| &mut s.tls_libraries)
        {
            library.state.clone_from(&reason);
        }
        let text = render(&report, Style::plain(80));
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(reason.trim()), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let coloured = Style {
            colour: true,
            width: 100,
        };
        let text = render(&sample::lossy_report(), coloured);
        let mut bare = text.clone();
        for code in [0, 1, 2, 31, 32, 33, 36] {
            bare = bare.replace(&format!("\x1b[{code}m"), "");
        }
        let trimmed: Vec<&str> = bare.lines().map(str::trim_end).collect();
        let plain = render(&sample::lossy_report(), Style::plain(100));
        assert_ne!(text, plain);
        assert_eq!(trimmed, plain.lines().collect::<Vec<_>>());
    }
}
