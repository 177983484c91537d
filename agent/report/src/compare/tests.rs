#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::model::{Change, ServiceComparison, Verdict};
use super::*;
use crate::compare::sample::{faster, group, scaled};
use crate::model::{Report, Requests, Resumption, Unit};
use crate::sample;

const SPREAD: f64 = 0.05;

fn two(before: Report, after: Report) -> Comparison {
    let groups = [group("before", vec![before]), group("after", vec![after])];
    compare(&groups, &[], SPREAD)
}

fn nginx(comparison: &Comparison) -> &ServiceComparison {
    let mut services = comparison.services.iter();
    services
        .find(|one| one.service_name == "nginx.service")
        .unwrap()
}

fn change<'a>(comparison: &'a Comparison, figure: &str) -> &'a Change {
    let mut figures = nginx(comparison).figures.iter();
    &figures.find(|one| one.figure == figure).unwrap().changes[0]
}

fn renamed(mut report: Report, from: &str, to: &str) -> Report {
    for service in &mut report.services {
        if service.service_name == from {
            service.service_name = to.to_owned();
        }
    }
    report
}

#[test]
fn a_report_compared_with_itself_has_changed_nowhere() {
    let comparison = two(sample::report(), sample::report());
    let figures = comparison.services.iter().flat_map(|one| &one.figures);
    let changes: Vec<&Change> = figures.flat_map(|figure| &figure.changes).collect();
    assert!(changes.len() > 15);
    for change in changes {
        assert!(!change.verdict.is_real(), "{change:?}");
        assert!(change.change.is_none_or(|by| by == 0.0), "{change:?}");
    }
    assert!(!comparison.has_worse());
}

/// The sample with HTTP/2, and as many requests as the load tool counted.
fn with_http2(mut report: Report, requests: Option<u64>) -> Report {
    for service in &mut report.services {
        service.requests = requests.map(|count| Requests::new(count, "h2load"));
        for one in &mut service.connections {
            one.turns_are_requests = Some(false);
        }
    }
    report
}

#[test]
fn turns_over_http2_are_not_judged() {
    let comparison = two(with_http2(scaled(1.0), None), with_http2(scaled(3.0), None));
    let figures = &nginx(&comparison).figures;
    let by_request: Vec<_> = figures
        .iter()
        .filter(|one| one.figure.contains("request"))
        .collect();
    assert_eq!(by_request.len(), 1, "{by_request:?}");
    assert_eq!(by_request[0].changes[0].verdict, Verdict::NotJudged);
    assert!(by_request[0].caveat.contains("HTTP/2"));
    assert_eq!(
        nginx(&comparison).ranking.as_ref().unwrap().figure,
        "cpu_per_full_handshake"
    );
}

#[test]
fn requests_that_were_counted_are_judged_whatever_a_turn_carries() {
    let [one, other] = [2.0, 1.0].map(|cpu| with_http2(scaled(cpu), Some(10_000)));
    let comparison = two(one, other);
    assert_eq!(
        change(&comparison, "cpu_per_request").verdict,
        Verdict::Better
    );
    assert!(
        !nginx(&comparison)
            .figures
            .iter()
            .any(|one| one.figure == "turns_per_connection")
    );
}

#[test]
fn half_the_cost_is_better_and_the_double_is_worse() {
    for (after, verdict) in [(0.5, Verdict::Better), (2.0, Verdict::Worse)] {
        let comparison = two(scaled(1.0), scaled(after));
        for figure in [
            "cpu_per_request",
            "cpu_per_full_handshake",
            "cpu_per_resumed_handshake",
        ] {
            let change = change(&comparison, figure);
            assert_eq!(change.verdict, verdict, "{figure} {change:?}");
            assert!((change.change.unwrap() - (after - 1.0)).abs() < 1e-9);
        }
        assert_eq!(comparison.has_worse(), verdict == Verdict::Worse);
        // The work was the same.
        assert_eq!(
            change(&comparison, "handshakes_per_request").verdict,
            Verdict::NoDifference
        );
    }
}

#[test]
fn figures_by_request_do_not_depend_on_how_long_the_load_was() {
    let mut longer = sample::report();
    longer.duration_seconds *= 10.0;
    let comparison = two(sample::report(), longer);
    assert_eq!(change(&comparison, "cpu_per_request").change, Some(0.0));
    // The rate does, and is not judged.
    let rate = change(&comparison, "requests_per_second");
    assert_eq!(rate.verdict, Verdict::NotJudged);
    assert!((rate.change.unwrap() + 0.9).abs() < 1e-9);
    assert!(!comparison.has_worse());
}

#[test]
fn a_figure_is_as_the_report_has_it() {
    let comparison = two(sample::report(), sample::report());
    let report = sample::report();
    let service = report
        .services
        .iter()
        .find(|one| one.service_name == "nginx.service")
        .unwrap();
    let turns = service
        .unit_costs
        .iter()
        .find(|cost| cost.unit == Unit::Turn)
        .unwrap()
        .count;
    let level = |figure: &str| {
        let mut figures = nginx(&comparison).figures.iter();
        figures.find(|one| one.figure == figure).unwrap().levels[0]
            .unwrap()
            .value
    };
    let near = |figure, expected: f64| {
        let found = level(figure);
        assert!(
            (found / expected - 1.0).abs() < 1e-9,
            "{figure}: {found} is not {expected}"
        );
    };
    near("cpu_per_request", service.cpu_seconds.total() / turns);
    near(
        "handshakes_per_request",
        service.handshake_count() as f64 / turns,
    );
    near("resumption_share", 1.0 / 3.0);
    near(
        "turns_per_connection",
        turns / service.connections[0].closed_count() as f64,
    );
    near("time_wait_per_request", 8820.0 / turns);
    near("requests_per_second", turns / 30.0);
}

#[test]
fn reports_from_before_errors_were_told_are_judged_by_their_quantiles() {
    let mut old = sample::report();
    for cost in old
        .services
        .iter_mut()
        .flat_map(|one| &mut one.handshake_costs)
    {
        assert!(cost.cpu.mean_error.take().is_some());
    }
    let comparison = two(old, scaled(0.5));
    assert_eq!(
        change(&comparison, "cpu_per_full_handshake").verdict,
        Verdict::Better
    );
}

#[test]
fn repeats_sharpen_a_verdict() {
    let single = two(scaled(1.0), scaled(0.8));
    assert_eq!(
        change(&single, "cpu_per_request").verdict,
        Verdict::NoDifference
    );
    let runs = |cost: f64| {
        [0.99, 1.01, 1.0, 1.02, 0.98]
            .map(|by| scaled(cost * by))
            .to_vec()
    };
    let groups = [group("before", runs(1.0)), group("after", runs(0.8))];
    let repeated = compare(&groups, &[], SPREAD);
    assert_eq!(
        change(&repeated, "cpu_per_request").verdict,
        Verdict::Better
    );
}

#[test]
fn little_data_is_called_so() {
    let mut short = sample::report();
    for service in &mut short.services {
        service
            .handshake_costs
            .retain(|cost| cost.resumption == Resumption::None);
        for cost in &mut service.handshake_costs {
            cost.count = 12;
        }
    }
    let comparison = two(sample::report(), short);
    let change = change(&comparison, "cpu_per_full_handshake");
    assert_eq!((change.verdict, change.low), (Verdict::NotEnoughData, None));
}

#[test]
fn services_are_matched_by_name_then_by_port_then_by_the_user() {
    let other = renamed(sample::report(), "nginx.service", "docker-nginx");
    let by_port = two(sample::report(), other.clone());
    let names = [
        Some("nginx.service".to_owned()),
        Some("docker-nginx".to_owned()),
    ];
    assert_eq!(nginx(&by_port).names, names);
    assert_eq!(nginx(&by_port).matched_by.label(), "port");

    let groups = [group("a", vec![sample::report()]), group("b", vec![other])];
    let pair = Pair {
        first: "nginx.service".into(),
        others: vec!["docker-nginx".into()],
    };
    let by_user = compare(&groups, &[pair], SPREAD);
    assert_eq!(by_user.services.len(), 1);
    assert_eq!(nginx(&by_user).names, names);
    assert_eq!(nginx(&by_user).matched_by.label(), "option");
}

#[test]
fn what_is_not_compared_is_told() {
    let mut after = sample::report();
    after
        .services
        .retain(|one| one.service_name != "domino.service");
    let comparison = two(sample::report(), after);
    let reason = |name: &str| {
        let mut left_out = comparison.left_out.iter();
        left_out
            .find(|one| one.service_name == name)
            .map(|one| one.reason.label())
    };
    assert_eq!(reason("domino.service"), Some("only_there"));
    assert_eq!(reason("orders-api.service"), Some("only_a_client"));
    assert_eq!(reason("sshd.service"), Some("silent"));
    assert_eq!(reason("nginx.service"), None);
}

#[test]
fn what_differs_beside_the_server_is_told() {
    let mut after = sample::report();
    after.host.hostname = "web2".into();
    after.host.cpus = 64;
    after.tlsprof_version = "9.9".into();
    after.sampling.period_seconds = Some(0.1);
    after.duration_seconds = 2.0;
    let warnings = two(sample::report(), after).warnings.join("\n");
    for word in ["web1, web2", "4, 64", "9.9", "100 ms", "(2.00 s)"] {
        assert!(warnings.contains(word), "{word} is not in:\n{warnings}");
    }
    assert!(two(sample::report(), sample::report()).warnings.is_empty());
}

#[test]
fn findings_and_mixes_are_counted() {
    let comparison = two(scaled(1.0), faster(0.5));
    let service = nginx(&comparison);
    let finding = service
        .findings
        .iter()
        .find(|one| one.id == "slow-key-exchange")
        .unwrap();
    assert_eq!(finding.runs, [1, 0]);
    let groups = service.mixes.iter().find(|mix| mix.of == "group").unwrap();
    let share = |name: &str| {
        let part = groups.parts.iter().find(|part| part.name == name);
        part.unwrap().shares.clone()
    };
    assert_eq!(share("x25519"), [Some(2.0 / 3.0), Some(1.0)]);
    assert_eq!(share("secp384r1"), [Some(1.0 / 3.0), Some(0.0)]);
}

#[test]
fn a_matrix_is_ranked_and_says_what_is_noise() {
    let costs = [("a", 1.0), ("b", 0.5), ("c", 0.51), ("d", 3.0)];
    let groups = costs.map(|(label, cost)| group(label, vec![scaled(cost)]));
    let comparison = compare(&groups, &[], SPREAD);
    let ranking = nginx(&comparison).ranking.as_ref().unwrap();
    assert_eq!(ranking.figure, "cpu_per_request");
    assert_eq!(ranking.order, ["b", "c", "a", "d"]);
    assert_eq!(ranking.alike, [["b", "c"]]);
    let changes = &nginx(&comparison).figures[0].changes;
    assert_eq!(
        changes
            .iter()
            .map(|one| one.label.as_str())
            .collect::<Vec<_>>(),
        ["b", "c", "d"]
    );
}

#[test]
fn more_judged_changes_make_each_interval_wider() {
    let few = two(scaled(1.0), scaled(1.0));
    let groups: Vec<_> = (0..9)
        .map(|n| group(&n.to_string(), vec![scaled(1.0)]))
        .collect();
    let many = compare(&groups, &[], SPREAD);
    assert_eq!(many.method.changes_judged, 8 * few.method.changes_judged);
    assert!(many.method.confidence_of_each > few.method.confidence_of_each);
    let width = |of: &Comparison| change(of, "cpu_per_request").high.unwrap();
    assert!(width(&many) > width(&few));
}
