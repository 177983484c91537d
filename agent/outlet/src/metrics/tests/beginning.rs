//! What a scrape has before there is anything to count.

use super::*;

/// A server that nobody has used yet.
fn listening(ledger: &SharedLedger, service: &str) {
    let mut queues = AcceptQueues::default();
    let queue = Queue {
        length: 0,
        limit: 511,
    };
    queues.add(queue, 0);
    let services = BTreeMap::from([(service.to_owned(), queues)]);
    ledger.write().unwrap().record_accept_queues(&services);
}

fn series(metrics: &Metrics, service: &str) -> Vec<String> {
    let text = String::from_utf8(metrics.encode(Format::PlainText).unwrap()).unwrap();
    let label = format!("service_name=\"{service}\"");
    let lines = text.lines().filter(|line| line.contains(&label));
    lines.map(str::to_owned).collect()
}

/// Else the first load test has no rates.
#[test]
fn what_a_load_test_shows_of_a_server_begins_at_zero() {
    let ledger = SharedLedger::default();
    let metrics = Metrics::new(&ledger);
    listening(&ledger, "nginx");
    let shown = [
        "tlsprof_connection_turns_sum{service_name=\"nginx\",role=\"server\"}",
        "tlsprof_connection_duration_seconds_count{service_name=\"nginx\",role=\"server\"}",
        "tlsprof_handshake_cpu_seconds_count{service_name=\"nginx\",role=\"server\",resumption=\"none\"}",
        "tlsprof_handshake_outcome_cpu_seconds_total{service_name=\"nginx\",role=\"server\",outcome=\"completed\"}",
    ];
    let values = |metrics: &Metrics| {
        let lines = series(metrics, "nginx");
        shown.map(|name| {
            let line = lines.iter().find_map(|line| line.strip_prefix(name));
            line.map(|value| value.trim().parse::<f64>().unwrap())
        })
    };
    assert_eq!(values(&metrics), [Some(0.0); 4]);
    let before = series(&metrics, "nginx").len();
    book(&ledger, &metrics, "nginx");
    let after = values(&metrics);
    assert!(after.iter().all(|value| value.unwrap() > 0.0), "{after:?}");
    assert!(before < series(&metrics, "nginx").len());
}

/// Hundreds of them run on a host.
#[test]
fn a_service_that_does_not_serve_has_no_handshakes_and_turns() {
    let ledger = SharedLedger::default();
    let metrics = Metrics::new(&ledger);
    let second = Duration::from_secs(1);
    ledger.write().unwrap().add_cpu("build", second, second);
    let opened = Evidence::Opened(tlsprof_evidence::sample::opening(Role::Client));
    ledger.write().unwrap().book("client", &opened);
    for service in ["build", "client"] {
        let series = series(&metrics, service);
        let of_servers = |line: &&String| line.contains("role=\"server\"");
        assert!(!series.is_empty());
        assert_eq!(series.iter().find(of_servers), None);
    }
}

/// The port is open while probes are attached: a zero would look like a spent budget.
#[test]
fn what_the_agent_measures_has_no_series_before_it_is_known() {
    let metrics = Metrics::new(&SharedLedger::default());
    let gauges = || {
        let text = String::from_utf8(metrics.encode(Format::PlainText).unwrap()).unwrap();
        let names = ["_duty_ratio", "_profiled_images", "_agent_services"];
        let ours =
            |line: &&str| !line.starts_with('#') && names.iter().any(|one| line.contains(one));
        assert!(
            text.contains("tlsprof_agent_cpu_seconds_total{} 0"),
            "{text}"
        );
        text.lines().filter(ours).count()
    };
    assert_eq!(gauges(), 0);
    metrics.set_agent(AgentStatus::default());
    assert_eq!(gauges(), 5);
}
