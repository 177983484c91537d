//! One service's part of the page.

use maud::{Markup, html};

use crate::outlet::html::anchor;
use crate::outlet::html::chart::{self, Part};
use crate::outlet::html::table::{Cell, Head, table};
use crate::outlet::report::model::{Connections, Service};
use crate::outlet::terminal::printable;
use crate::units::{bytes, count, counted, percent, time};

use super::text::service::{outcomes_in_words, wait_in_words, with_role};
use super::text::{activities, connections, costs, words};

/// Classes of turns that are drawn; the JSON has all.
const CLASSES: usize = 24;

pub(super) fn render(service: &Service, at: usize, seconds: f64) -> Markup {
    html! {
        h2 id=(anchor("service", at)) { (printable(&service.service_name)) }
        (head(service))
        p { (outcomes_in_words(service, seconds)) }
        (cpu(service))
        (unit_costs(service))
        (steps(service))
        (handshake_costs(service))
        (negotiated(service))
        (waits(service))
        (alerts(service))
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

fn name(label: &str) -> String {
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

fn remarks(notes: impl IntoIterator<Item = String>) -> Markup {
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
            Cell::Text(printable(activities::unit_in_words(cost)).into_owned()),
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

fn steps(service: &Service) -> Markup {
    let cpu = service.handshake_cpu_seconds();
    if service.steps.is_empty() || cpu <= 0.0 {
        return html! {};
    }
    let mut steps = costs::parts(service);
    steps.sort_by(|a, b| b.cpu_seconds.total_cmp(&a.cpu_seconds));
    let heads = [
        Head::Left("step"),
        Head::Right("share"),
        Head::Left("share, drawn"),
        Head::Right("CPU"),
        Head::Right("by handshake"),
        Head::Right("measured in"),
    ];
    let rows = steps.iter().map(|step| {
        let share = step.cpu_seconds / cpu;
        vec![
            Cell::Text(printable(&with_role(service, &step.role, &name(&step.step))).into_owned()),
            Cell::Number(percent(share)),
            Cell::Chart(chart::bar(share, "handshake", None)),
            Cell::Number(time(step.cpu_seconds)),
            Cell::Number(time(step.cpu_seconds / step.handshakes.max(1) as f64)),
            Cell::Number(format!(
                "{} of {}",
                count(step.measured_handshakes),
                count(step.handshakes)
            )),
        ]
    });
    html! {
        h3 { "Where the CPU time of handshakes goes" }
        (table("CPU time of handshakes by step", &heads, rows.collect()))
    }
}

fn handshake_costs(service: &Service) -> Markup {
    let furthest = service
        .handshake_costs
        .iter()
        .map(|cost| cost.cpu.p99)
        .fold(0.0, f64::max);
    let heads = [
        Head::Left("handshake"),
        Head::Right("count"),
        Head::Right("CPU mean"),
        Head::Left("CPU, median to 99%; mark: mean"),
        Head::Right("p50"),
        Head::Right("p90"),
        Head::Right("p99"),
        Head::Right("max"),
        Head::Right("wall p50"),
        Head::Right("wall p99"),
    ];
    let rows = service.handshake_costs.iter().map(|cost| {
        let kind = costs::resumption_in_words(&cost.resumption);
        let (cpu, wall) = (cost.cpu, cost.duration);
        let ends = [cpu.p50, cpu.mean, cpu.p99];
        vec![
            Cell::Text(printable(&with_role(service, &cost.role, &kind)).into_owned()),
            Cell::Number(count(cost.count)),
            Cell::Number(time(cpu.mean)),
            Cell::Chart(chart::interval("higher", ends, (0.0, furthest), None)),
            Cell::Number(time(cpu.p50)),
            Cell::Number(time(cpu.p90)),
            Cell::Number(time(cpu.p99)),
            Cell::Number(time(cpu.max)),
            Cell::Number(time(wall.p50)),
            Cell::Number(time(wall.p99)),
        ]
    });
    html! {
        @if !service.handshake_costs.is_empty() {
            h3 { "Cost of one completed handshake" }
            (table("Distribution of CPU and wall time", &heads, rows.collect()))
        }
    }
}

/// By what was negotiated: the handshake mix.
fn negotiated(service: &Service) -> Markup {
    let cpu = service.handshake_cpu_seconds();
    let heads = [
        Head::Left("key exchange"),
        Head::Left("signature"),
        Head::Left("resumption"),
        Head::Left("version"),
        Head::Left("cipher"),
        Head::Left("outcome"),
        Head::Right("count"),
        Head::Right("CPU each"),
        Head::Right("share"),
    ];
    let rows = service.handshakes.iter().map(|group| {
        let timed = group.count.saturating_sub(group.offloaded);
        let each = group.cpu_seconds / timed.max(1) as f64;
        vec![
            Cell::Text(printable(&with_role(service, &group.role, &group.group)).into_owned()),
            Cell::Text(name(&group.signature)),
            Cell::Text(name(&group.resumption)),
            Cell::Text(printable(&group.version).into_owned()),
            Cell::Text(printable(&group.cipher).into_owned()),
            Cell::Text(printable(&group.outcome).into_owned()),
            Cell::Number(count(group.count)),
            Cell::Number(if timed > 0 {
                time(each)
            } else {
                "-".to_owned()
            }),
            Cell::Number(if cpu > 0.0 {
                percent(group.cpu_seconds / cpu)
            } else {
                "-".to_owned()
            }),
        ]
    });
    html! {
        @if !service.handshakes.is_empty() {
            h3 { "What was negotiated" }
            (table("Handshakes, the dearest first", &heads, rows.collect()))
        }
    }
}

fn waits(service: &Service) -> Markup {
    let total: f64 = service.waits.iter().map(|wait| wait.seconds).sum();
    let mut waits: Vec<_> = service.waits.iter().collect();
    waits.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let heads = [
        Head::Left("waiting for"),
        Head::Right("share"),
        Head::Left("share, drawn"),
        Head::Right("time"),
    ];
    let rows = waits.iter().map(|wait| {
        let share = wait.seconds / total;
        let what = with_role(service, &wait.role, wait_in_words(&wait.reason));
        vec![
            Cell::Text(printable(&what).into_owned()),
            Cell::Number(percent(share)),
            Cell::Chart(chart::bar(share, "application", None)),
            Cell::Number(time(wait.seconds)),
        ]
    });
    html! {
        @if total > 0.0 {
            h3 { "Time off the CPU in handshakes" }
            (table("From first call to end, summed over handshakes", &heads, rows.collect()))
        }
    }
}

fn alerts(service: &Service) -> Markup {
    let heads = [
        Head::Left("alert"),
        Head::Left("direction"),
        Head::Right("count"),
    ];
    let rows = service.alerts.iter().map(|alert| {
        vec![
            Cell::Text(name(&alert.description)),
            Cell::Text(printable(&alert.direction).into_owned()),
            Cell::Number(count(alert.count)),
        ]
    });
    html! {
        @if !service.alerts.is_empty() {
            h3 { "Alerts" }
            (table("Alerts that travelled in clear", &heads, rows.collect()))
        }
    }
}

fn tcp(service: &Service, seconds: f64) -> Markup {
    if service.connection_count() == 0 {
        return html! {};
    }
    let sentences = service
        .connections
        .iter()
        .flat_map(|one| [connections::peak(one), connections::time_wait(one, seconds)]);
    let sentences = sentences
        .chain([connections::ephemeral_ports(service)])
        .flatten();
    html! {
        h3 { "TCP connections" }
        @for sentence in sentences { p { (printable(&sentence)) } }
        @for one in &service.connections {
            (closers(one))
            (turns(one))
        }
        (remarks(connections::notes(service)))
    }
}

fn closers(one: &Connections) -> Markup {
    let heads = [
        Head::Left("role"),
        Head::Right("opened"),
        Head::Left("closed by"),
        Head::Right("connections"),
        Head::Right("reset"),
        Head::Right("received"),
        Head::Right("sent"),
    ];
    let rows = one.closed.iter().map(|closed| {
        vec![
            Cell::Text(printable(&one.role).into_owned()),
            Cell::Number(count(one.opened)),
            Cell::Text(connections::closer(closed, &one.role).to_owned()),
            Cell::Number(count(closed.count)),
            Cell::Number(count(closed.reset)),
            Cell::Number(bytes(one.bytes_received)),
            Cell::Number(bytes(one.bytes_sent)),
        ]
    });
    table(
        &format!("Who closes connections, {} role", printable(&one.role)),
        &heads,
        rows.collect(),
    )
}

/// How many connections had how many turns, whoever closed them.
fn turns(one: &Connections) -> Markup {
    let mut classes: std::collections::BTreeMap<(u32, u32), u64> =
        std::collections::BTreeMap::new();
    for class in one.closed.iter().flat_map(|closed| &closed.turns) {
        let sum = classes.entry((class.from, class.to)).or_default();
        *sum = sum.saturating_add(class.connections);
    }
    let total: u64 = classes.values().sum();
    let more = classes.len().saturating_sub(CLASSES);
    let heads = [
        Head::Left("requests"),
        Head::Right("connections"),
        Head::Right("share"),
        Head::Left("share, drawn"),
    ];
    let rows = classes.iter().take(CLASSES).map(|((from, to), number)| {
        let share = *number as f64 / total.max(1) as f64;
        let class = if from == to {
            count(u64::from(*from))
        } else {
            format!("{} to {}", count(u64::from(*from)), count(u64::from(*to)))
        };
        vec![
            Cell::Text(class),
            Cell::Number(count(*number)),
            Cell::Number(percent(share)),
            Cell::Chart(chart::bar(share, "socket_io", None)),
        ]
    });
    html! {
        @if total > 0 {
            (table(&format!("Requests on each connection, {} role", printable(&one.role)), &heads, rows.collect()))
            @if more > 0 { p class="soft small" { "And " (more) " more classes (all are in the JSON)." } }
        }
    }
}
