//! The report as one page: the answer first, then its evidence.

mod connections;
mod findings;
mod handshakes;
mod service;

use maud::{Markup, html};

use crate::outlet::html::table::{Cell, Head, table};
use crate::outlet::html::{anchor, chart, page};
use crate::outlet::report::model::{Report, Service};
use crate::outlet::terminal::printable;
use crate::units::{count, percent, time};

use super::text;

/// The report as a page of its own.
pub fn render(report: &Report) -> String {
    let shown: Vec<&Service> = report
        .services
        .iter()
        .filter(|one| is_shown(report, one))
        .collect();
    let content = html! {
        header {
            h1 { "tlsprof · " (text::circumstances(report)) }
            (answer(report))
            (losses(report))
            (key_figures(report))
        }
        main {
            (findings::findings(report))
            (overview(report))
            @for (at, service) in shown.iter().enumerate() {
                section aria-labelledby=(anchor("service", at)) {
                    (service::render(service, at, report.duration_seconds))
                }
            }
        }
        (end(report))
    };
    page(
        &format!("tlsprof: {}", printable(&report.host.hostname)),
        &content,
    )
}

/// Services that did something; the only one in any case.
fn is_shown(report: &Report, service: &Service) -> bool {
    let seen = service.handshake_count() > 0
        || service.connection_count() > 0
        || text::activities::has_tls(service);
    seen || report.services.len() == 1
}

fn answer(report: &Report) -> Markup {
    html! {
        @if let Some(answer) = text::headline(report) {
            p class="lead" { (answer) }
        } @else {
            p class="lead" { (text::silent_headline(report)) }
            p { "What to check:" }
            ul { @for check in text::CHECKS { li { (check) } } }
        }
        @if let Some(command) = text::command_in_words(report) { p { (command) } }
    }
}

fn losses(report: &Report) -> Markup {
    html! {
        @if let Some((alarm, reasons)) = text::losses::serious_losses(report) {
            div class="card alarm" role="alert" {
                p { strong { (alarm) } }
                ul { @for reason in reasons { li { (reason) } } }
            }
        }
    }
}

/// The figures that most readers came for.
fn key_figures(report: &Report) -> Markup {
    let Some(first) = report
        .services
        .first()
        .filter(|one| one.handshake_count() > 0)
    else {
        return html! {};
    };
    let full = first
        .handshake_costs
        .iter()
        .find(|cost| cost.resumption == "none");
    html! {
        dl class="figures" {
            @if let Some(share) = text::share(first) {
                (figure("handshakes", &percent(share), "of its CPU"))
            }
            @if let Some((each, _)) = text::activities::by_request(first) {
                (figure("CPU per request", &time(each), "everything included"))
            }
            @if let Some(cost) = full {
                (figure("a full handshake", &time(cost.cpu.mean), "of CPU, on average"))
            }
            (figure("handshakes seen", &count(first.handshake_count()), &printable(&first.service_name)))
        }
    }
}

fn figure(name: &str, value: &str, remark: &str) -> Markup {
    html! { div { dt { (name) } dd { (value) span { (remark) } } } }
}

fn overview(report: &Report) -> Markup {
    if report.services.is_empty() {
        return html! { p { "No service was profiled." } };
    }
    let heads = [
        Head::Left("service"),
        Head::Right("CPU"),
        Head::Right("handshakes"),
        Head::Right("their CPU"),
        Head::Right("share"),
        Head::Left("share, drawn"),
    ];
    let mut number = 0;
    let rows = report.services.iter().map(|service| {
        let share = text::share(service);
        let name = printable(&service.service_name).into_owned();
        let name = if is_shown(report, service) {
            number += 1;
            Cell::Markup(html! { a href={ "#" (anchor("service", number - 1)) } { (name) } })
        } else {
            Cell::Text(name)
        };
        vec![
            name,
            Cell::Number(time(service.cpu_seconds.total())),
            Cell::Number(count(service.handshake_count())),
            Cell::Number(time(service.handshake_cpu_seconds())),
            Cell::Number(share.map_or_else(|| "-".to_owned(), percent)),
            Cell::Chart(chart::bar(share.unwrap_or(0.0), "handshake", None)),
        ]
    });
    let rows = rows.collect();
    html! {
        h2 { "Services" }
        (table("Handshakes of each service, and their share of its CPU", &heads, rows))
    }
}

fn end(report: &Report) -> Markup {
    html! {
        footer {
            h2 { "How this was measured" }
            p { (text::own_cost_in_words(report)) }
            @for note in text::notes_in_words(report) { p { (note) } }
            p { "Made by tlsprof " (printable(&report.tlsprof_version)) "." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::outlet::html::check;
    use crate::outlet::terminal::golden;

    #[test]
    fn snapshot_of_a_report() {
        let page = render(&sample::report());
        check::page(&page);
        golden::snapshot("report.html", &page);
    }

    #[test]
    fn snapshot_with_losses_and_a_command() {
        let page = render(&sample::lossy_report());
        check::page(&page);
        golden::snapshot("report-lossy.html", &page);
    }

    #[test]
    fn silence_has_a_page_too() {
        let page = render(&sample::silent_report());
        check::page(&page);
        assert!(page.contains("No TLS handshake was seen") && page.contains("What to check"));
    }

    #[test]
    fn names_are_text_and_never_markup() {
        let hostile = "<img src=x onerror=alert(1)>\x1b[2J\"'&";
        let mut report = sample::lossy_report();
        report.host.hostname = hostile.to_owned();
        report.started_at = hostile.to_owned();
        report.notes.push(hostile.to_owned());
        for service in &mut report.services {
            service.service_name = hostile.to_owned();
            service.executable = hostile.to_owned();
            for library in &mut service.tls_libraries {
                library.path = hostile.to_owned();
                library.state = hostile.to_owned();
            }
            for group in &mut service.handshakes {
                group.cipher = hostile.to_owned();
                group.group = hostile.to_owned();
                group.role = hostile.to_owned();
            }
            for activity in &mut service.activities {
                activity.activity = hostile.to_owned();
            }
            for alert in &mut service.alerts {
                alert.description = hostile.to_owned();
            }
        }
        report.findings = sample::report().findings;
        for finding in &mut report.findings {
            finding.title = hostile.to_owned();
            finding.severity = hostile.to_owned();
            finding.evidence.push(hostile.to_owned());
            finding.remedy.directive = hostile.to_owned();
        }
        if let Some(command) = &mut report.command {
            command.arguments.push(hostile.to_owned());
        }
        let page = render(&report);
        assert!(!page.contains("<img"), "markup in the page");
        assert!(!page.chars().any(|c| c.is_control() && c != '\n'));
        assert!(page.contains("&lt;img"));
    }
}
