#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;

use super::{html, json, text};
use crate::html::check;
use crate::terminal::Style;
use tlsprof_common::golden;
use tlsprof_report::compare::compare;
use tlsprof_report::compare::model::Comparison;
use tlsprof_report::compare::sample::{self as compared, group};
use tlsprof_report::model::Report;
use tlsprof_report::sample;

const SPREAD: f64 = 0.05;

fn hostile_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(-1.0),
        Just(1e308),
        Just(-1e308),
        Just(f64::MIN_POSITIVE),
        Just(5e-324),
        any::<f64>().prop_filter("JSON has no others", |number| number.is_finite()),
    ]
}

fn hostile_count() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        Just(u64::MAX - 1),
        any::<u64>()
    ]
}

/// The sample report with impossible figures and names.
fn hostile() -> impl Strategy<Value = Report> {
    let numbers = proptest::collection::vec(hostile_number(), 16);
    let counts = proptest::collection::vec(hostile_count(), 16);
    let name = prop_oneof![
        Just(String::new()),
        any::<String>(),
        Just("\x1b[2J\u{202e}<b>".to_owned())
    ];
    (numbers, counts, name, any::<u8>()).prop_map(|(numbers, counts, name, drop)| {
        let mut report = sample::report();
        report.duration_seconds = numbers[0];
        report.host.hostname.clone_from(&name);
        report.tlsprof_version.clone_from(&name);
        for service in &mut report.services {
            if service.service_name == "nginx.service" && drop & 1 == 1 {
                service.service_name.clone_from(&name);
            }
            service.cpu_seconds.user = numbers[1];
            service.cpu_seconds.system = numbers[2];
            for one in &mut service.activities {
                (one.cpu_seconds, one.samples) = (numbers[3], counts[0]);
            }
            if let Some(samples) = &mut service.cpu_samples {
                samples.count = counts[1];
            }
            for one in &mut service.unit_costs {
                (one.count, one.cpu_seconds, one.samples) = (numbers[4], numbers[5], counts[2]);
            }
            for one in &mut service.handshakes {
                (one.count, one.cpu_seconds, one.offloaded) = (counts[3], numbers[6], counts[4]);
                one.group.clone_from(&name);
            }
            for one in &mut service.handshake_costs {
                (one.count, one.cpu.mean, one.cpu.p99) = (counts[5], numbers[7], numbers[8]);
                one.cpu.mean_error = (drop & 2 == 0).then_some(numbers[9]);
            }
            for one in &mut service.connections {
                (one.opened, one.time_wait_created) = (counts[6], counts[7]);
                for closed in &mut one.closed {
                    closed.count = counts[8];
                    for turns in &mut closed.turns {
                        (turns.from, turns.to, turns.connections) = (u32::MAX, 0, counts[9]);
                    }
                }
            }
            service.connections_from_before = counts[10];
            if drop & 4 == 4 {
                service.unit_costs.clear();
            }
            if drop & 8 == 8 {
                service.cpu_samples = None;
            }
            if drop & 16 == 16 {
                service.connections.clear();
                service.handshakes.clear();
            }
        }
        report
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever a report says, there is a comparison, it can be shown, and no name drives
    /// a terminal or a browser.
    #[test]
    fn any_reports_can_be_compared(reports in proptest::collection::vec(hostile(), 2..4)) {
        let groups: Vec<_> = reports
            .into_iter()
            .enumerate()
            .map(|(at, report)| group(&at.to_string(), vec![report, sample::report()]))
            .collect();
        let comparison = compare(&groups, &[], SPREAD);
        let shown = text(&comparison, Style::plain(80));
        prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
        let page = html(&comparison);
        prop_assert!(!page.contains('\x1b') && !page.contains("<b>"));
        let written = json::render(&comparison).unwrap();
        let back: Comparison = serde_json::from_str(&written).unwrap();
        prop_assert_eq!(back, comparison);
    }
}

#[test]
fn snapshot_of_two_reports() {
    let text = text(&compared::two(), Style::plain(100));
    golden::snapshot("compare-two.txt", &text);
    assert!(text.lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn snapshot_of_repeats_at_80_columns() {
    let text = text(&compared::repeats(), Style::plain(80));
    golden::snapshot("compare-repeats-80.txt", &text);
    assert!(text.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn snapshot_of_a_matrix() {
    let text = text(&compared::matrix(), Style::plain(120));
    golden::snapshot("compare-matrix.txt", &text);
    assert!(text.lines().all(|line| line.chars().count() <= 120));
}

#[test]
fn page_of_two_reports() {
    let page = html(&compared::two());
    check::page(&page);
    golden::snapshot("compare-two.html", &page);
}

#[test]
fn page_of_a_matrix() {
    let page = html(&compared::matrix());
    check::page(&page);
    golden::snapshot("compare-matrix.html", &page);
}

#[test]
fn names_are_text_and_never_markup() {
    let hostile = "<img src=x onerror=alert(1)>\x1b[2J";
    let mut comparison = compared::two();
    for service in &mut comparison.services {
        service.service_name = hostile.to_owned();
        service.notes.push(hostile.to_owned());
        for finding in &mut service.findings {
            finding.title = hostile.to_owned();
        }
    }
    comparison.warnings.push(hostile.to_owned());
    let page = html(&comparison);
    assert!(!page.contains("<img") && !page.contains('\x1b'));
    assert!(page.contains("&lt;img"));
}
