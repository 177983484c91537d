//! One service's part of the page.

use maud::{Markup, html};

use crate::outlet::html::anchor;
use crate::outlet::html::chart::{self, Part};
use crate::outlet::html::table::{Cell, Head, table};
use crate::outlet::report::model::Service;
use crate::outlet::terminal::printable;
use crate::units::{count, counted, percent, time};

use super::connections::tcp;
use super::handshakes;
use super::text::service::outcomes_in_words;
use super::text::{activities, words};

pub(super) fn render(service: &Service, at: usize, seconds: f64) -> Markup {
    html! {
        h2 id=(anchor("service", at)) { (printable(&service.service_name)) }
        (head(service))
        p { (outcomes_in_words(service, seconds)) }
        (cpu(service))
        (unit_costs(service))
        (handshakes::steps(service))
        (handshakes::handshake_costs(service))
        (handshakes::negotiated(service))
        (handshakes::waits(service))
        (handshakes::alerts(service))
        (tcp(service, seconds))
    }
}

fn head(service: &Service) -> Markup {
    let ports: Vec<String> = service.ports.iter().map(u16::to_string).collect();
    let cpu = service.cpu_seconds;
    html! {
        p class="soft" {
            @if !service.executable.is_empty() { code { (printable(&service.executable)) } " · " }
            (counted(u64::from(service.processes), "process", "processes"))
            @if !ports.is_empty() { " · port " (ports.join(", ")) }
            " · CPU " (time(cpu.total())) " (user " (time(cpu.user)) ", system " (time(cpu.system)) ")"
            @for library in &service.tls_libraries {
                br;
                (printable(&format!("{} {}", library.kind, library.version))) " · "
                code { (printable(&library.path)) } " · " (printable(&library.state))
            }
        }
    }
}

/// A class of the style for an activity.
fn class(activity: &str) -> &'static str {
    match activity {
        "handshake" => "handshake",
        "encryption" => "encryption",
        "socket_io" => "socket_io",
        "tcp_open" => "tcp_open",
        "tcp_close" => "tcp_close",
        "application" => "application",
        _ => "rest",
    }
}

/// A label in words.
pub(super) fn name(label: &str) -> String {
    printable(&words(label)).into_owned()
}

/// What the CPU time went on: a bar of all, and a table with limits.
fn cpu(service: &Service) -> Markup {
    let Some(samples) = &service.cpu_samples else {
        return html! {};
    };
    let mut parts: Vec<Part> = Vec::new();
    let mut rows = Vec::new();
    for one in &service.activities {
        let limits = format!("{} to {}", percent(one.share_low), percent(one.share_high));
        parts.push(Part {
            name: name(&one.activity),
            share: one.share,
            class: class(&one.activity),
            told: percent(one.share),
        });
        rows.push((
            one.cpu_seconds,
            vec![
                Cell::Markup(html! { (chart::swatch(class(&one.activity))) (name(&one.activity)) }),
                Cell::Number(percent(one.share)),
                Cell::Chart(chart::bar(
                    one.share,
                    class(&one.activity),
                    Some((one.share_low, one.share_high)),
                )),
                Cell::Number(limits),
                Cell::Number(time(one.cpu_seconds)),
                Cell::Number(time(one.user_seconds)),
                Cell::Number(time(one.system_seconds)),
            ],
        ));
    }
    if samples.unattributed_seconds > 0.0 {
        let share = samples.unattributed_seconds / service.cpu_seconds.total();
        parts.push(Part {
            name: "not sampled".to_owned(),
            share,
            class: "rest",
            told: percent(share),
        });
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let heads = [
        Head::Left("activity"),
        Head::Right("share"),
        Head::Left("share, drawn; line: 95% range"),
        Head::Right("95% range"),
        Head::Right("CPU"),
        Head::Right("user"),
        Head::Right("system"),
    ];
    let number = counted(samples.count, "sample", "samples");
    html! {
        h3 { "What the CPU time went on" }
        (chart::stack(&format!("CPU time of {} by activity", printable(&service.service_name)), &parts))
        (table(&format!("CPU time by activity, from {number}"), &heads, rows.into_iter().map(|row| row.1).collect()))
        (remarks([activities::softirq_in_words(service)]))
        (remarks(activities::sample_notes_in_words(samples)))
    }
}

/// Side remarks.
pub(super) fn remarks(notes: impl IntoIterator<Item = String>) -> Markup {
    html! {
        @for note in notes {
            @if !note.is_empty() { p class="soft small" { (printable(&note)) } }
        }
    }
}

fn unit_costs(service: &Service) -> Markup {
    let most = service
        .unit_costs
        .iter()
        .map(|cost| cost.high_seconds)
        .fold(0.0, f64::max);
    let heads = [
        Head::Left("one"),
        Head::Right("CPU"),
        Head::Left("95% range"),
        Head::Right("samples"),
        Head::Right("of"),
    ];
    let rows = service.unit_costs.iter().map(|cost| {
        let ends = [cost.low_seconds, cost.cpu_seconds, cost.high_seconds];
        vec![
            Cell::Text(printable(activities::unit_in_words(service, cost)).into_owned()),
            Cell::Number(time(cost.cpu_seconds)),
            Cell::Chart(html! {
                (chart::interval("higher", ends, (0.0, most), None))
                span class="soft small" { (time(cost.low_seconds)) " to " (time(cost.high_seconds)) }
            }),
            Cell::Number(count(cost.samples)),
            Cell::Number(activities::how_many(cost)),
        ]
    });
    html! {
        @if !service.unit_costs.is_empty() {
            h3 { "What a unit of work costs" }
            (table("CPU time by samples over exact counts", &heads, rows.collect()))
            (remarks(activities::unit_notes_in_words(service)))
        }
    }
}
