//! The handshakes of one service: what they cost, and what they used.

use maud::{Markup, html};

use crate::outlet::html::chart;
use crate::outlet::html::table::{Cell, Head, table};
use crate::outlet::report::model::Service;
use crate::outlet::terminal::printable;
use crate::units::{count, percent, time};

use super::service::name;
use super::text::costs;
use super::text::service::{wait_in_words, with_role};

pub(super) fn steps(service: &Service) -> Markup {
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

pub(super) fn handshake_costs(service: &Service) -> Markup {
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
pub(super) fn negotiated(service: &Service) -> Markup {
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
        let each = group.cpu_seconds / group.count.max(1) as f64;
        vec![
            Cell::Text(printable(&with_role(service, &group.role, &group.group)).into_owned()),
            Cell::Text(name(&group.signature)),
            Cell::Text(name(&group.resumption)),
            Cell::Text(printable(&group.version).into_owned()),
            Cell::Text(printable(&group.cipher).into_owned()),
            Cell::Text(printable(&group.outcome).into_owned()),
            Cell::Number(count(group.count)),
            Cell::Number(if group.count > 0 {
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

pub(super) fn waits(service: &Service) -> Markup {
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

pub(super) fn alerts(service: &Service) -> Markup {
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
