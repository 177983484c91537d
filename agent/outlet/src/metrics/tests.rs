//! What a scraper gets.
#![allow(clippy::unwrap_used, reason = "tests")]

mod beginning;
mod connections;
mod handshakes;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use super::*;
use crate::doctor::{Capability, Group, State};
use crate::load_test::LoadTests;
use crate::metrics::sample::book;
use tlsprof_common::{Carries, Loss, Role, Source, golden};
use tlsprof_evidence::Comparison;
use tlsprof_evidence::accept_queue::{AcceptQueues, Queue};
use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_evidence::hello::fixture;
use tlsprof_ledger::{Ledger, Sampling};
use tlsprof_report::sample;

/// Two seconds, of which samples for 1.8 s came, and CPU time of a service without any.
fn book_cpu(ledger: &SharedLedger) {
    let mut ledger = ledger.write().unwrap();
    ledger.set_sampling(Sampling::Every(Duration::from_millis(10)));
    for (activity, mode, count) in [
        (Activity::Handshake, Mode::User, 120),
        (Activity::SocketIo, Mode::System, 60),
        (Activity::TcpClose, Mode::Softirq, 3),
    ] {
        ledger.add_samples("nginx.service", activity, mode, count);
    }
    ledger.note_unclassified("nginx.service", 2);
    let second = Duration::from_secs(1);
    ledger.add_cpu("nginx.service", second, second);
    ledger.add_cpu("idle.service", Duration::ZERO, Duration::from_millis(4));
}

fn metrics() -> Metrics {
    let ledger = SharedLedger::default();
    let metrics = Metrics::new(&ledger);
    for _ in 0..3 {
        book(&ledger, &metrics, "nginx.service");
    }
    book_cpu(&ledger);
    metrics.set_agent(AgentStatus {
        process: Some(|| {
            Some(ProcessStatus {
                start_time: 1_700_000_000.5,
                virtual_memory_bytes: 200_000_000,
                open_fds: 60,
                max_fds: Some(65_536),
                threads: 5,
            })
        }),
        events_lost: vec![(Loss::EventRingFull, 0)],
        capabilities: vec![Capability {
            name: "handshakes",
            state: State::Available,
            summary: None,
            gives: "handshakes",
            group: Group::Needed,
        }],
        load_tests: LoadTests {
            running: true,
            began: Some(SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_250)),
        },
        ..AgentStatus::default()
    });
    metrics
}

fn text(format: Format) -> String {
    String::from_utf8(metrics().encode(format).unwrap()).unwrap()
}

#[test]
fn counters_and_histograms_have_the_documented_names() {
    let text = text(Format::OpenMetrics);
    for line in [
        "tlsprof_handshakes_total{service_name=\"nginx.service\",role=\"server\",\
         version=\"TLS1.3\",cipher=\"TLS_AES_256_GCM_SHA384\",group=\"x25519\",\
         signature=\"rsa_2048\",resumption=\"none\",outcome=\"completed\"} 3",
        "tlsprof_handshake_step_cpu_seconds_total{service_name=\"nginx.service\",\
         role=\"server\",step=\"signing\"} 0.002715",
        "tlsprof_handshake_wait_seconds_total{service_name=\"nginx.service\",\
         reason=\"network\"} 0.0009",
        "tlsprof_handshake_cpu_seconds_bucket{le=\"0.0016\",service_name=\"nginx.service\",\
         role=\"server\",resumption=\"none\"} 3",
        "tlsprof_connections_closed_total{service_name=\"nginx.service\",role=\"server\",\
         closed_by=\"local\"} 3",
        "tlsprof_connections_closed_total{service_name=\"nginx.service\",role=\"server\",\
         closed_by=\"timeout\"} 0",
        "tlsprof_connection_turns_bucket{le=\"3.0\",service_name=\"nginx.service\",\
         role=\"server\"} 0",
        "tlsprof_connection_turns_bucket{le=\"5.0\",service_name=\"nginx.service\",\
         role=\"server\"} 3",
        "tlsprof_time_wait_created_total{service_name=\"nginx.service\",role=\"server\"} 3",
        "tlsprof_listen_overflows_total{service_name=\"nginx.service\"} 6",
        "tlsprof_accept_queue_length{service_name=\"nginx.service\"} 7",
        "tlsprof_accept_queue_limit{service_name=\"nginx.service\"} 511",
        "tlsprof_accept_wait_seconds_bucket{le=\"0.0001\",service_name=\"nginx.service\"} 3",
        "tlsprof_service_cpu_seconds_total{service_name=\"nginx.service\",mode=\"system\"} 1.0",
        "tlsprof_cpu_seconds_total{service_name=\"nginx.service\",activity=\"handshake\",\
         mode=\"user\"} 1.333333333",
        "tlsprof_cpu_seconds_total{service_name=\"nginx.service\",activity=\"socket_io\",\
         mode=\"system\"} 0.666666667",
        "tlsprof_cpu_seconds_total{service_name=\"nginx.service\",activity=\"tcp_close\",\
         mode=\"softirq\"} 0.03",
        "tlsprof_cpu_seconds_total{service_name=\"idle.service\",activity=\"unattributed\",\
         mode=\"system\"} 0.0",
        "tlsprof_cpu_samples_total{service_name=\"nginx.service\",activity=\"handshake\",\
         mode=\"user\"} 120",
        "tlsprof_cpu_samples_unclassified_total{service_name=\"nginx.service\"} 2",
        "tlsprof_cpu_sample_period_seconds{} 0.01",
        "tlsprof_cpu_reconciliation_error_ratio{service_name=\"nginx.service\"} 0.0",
        "tlsprof_cpu_reconciliation_error_ratio{service_name=\"idle.service\"} 1.0",
        "tlsprof_cpu_sampled_ratio{service_name=\"nginx.service\"} 0.9",
        "tlsprof_agent_events_lost_total{reason=\"event_ring_full\"} 0",
        "tlsprof_agent_capability{capability=\"handshakes\",state=\"available\"} 1",
        "tlsprof_report_running{} 1",
        "tlsprof_report_start_time_seconds{} 1700000000.25",
        "# EOF",
    ] {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
}

#[test]
fn snapshot_of_a_scrape() {
    let metrics = metrics();
    metrics.set_findings(&sample::findings());
    let text = String::from_utf8(metrics.encode(Format::OpenMetrics).unwrap()).unwrap();
    let text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    golden::snapshot("metrics.txt", &text);
}

/// Series of `tlsprof_cpu_seconds_total` of a service, and their sum in milliseconds.
fn activities(metrics: &Metrics, service: &str) -> (usize, u128) {
    let text = String::from_utf8(metrics.encode(Format::OpenMetrics).unwrap()).unwrap();
    let name = format!("tlsprof_cpu_seconds_total{{service_name=\"{service}\"");
    let lines = text.lines().filter(|line| line.starts_with(&name));
    let in_sum = lines.clone().filter(|line| !line.contains("softirq"));
    let values = in_sum.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap());
    let sum: f64 = values.sum();
    (lines.count(), Duration::from_secs_f64(sum).as_millis())
}

#[test]
fn a_service_that_only_computes_has_the_activities_that_it_had() {
    let ledger = SharedLedger::default();
    let metrics = Metrics::new(&ledger);
    let work = |activity, mode| {
        let mut ledger = ledger.write().unwrap();
        ledger.set_sampling(Sampling::Every(Duration::from_millis(10)));
        ledger.add_samples("build", activity, mode, 50);
        let [user, system] = [Mode::User, Mode::System]
            .map(|one| Duration::from_millis(if one == mode { 500 } else { 0 }));
        ledger.add_cpu("build", user, system);
    };
    // The application's two and what no sample speaks for.
    work(Activity::Application, Mode::User);
    assert_eq!(activities(&metrics, "build"), (4, 500));
    work(Activity::SocketIo, Mode::System);
    assert_eq!(activities(&metrics, "build"), (5, 1000));
    // From its first connection on: all.
    let opened = Evidence::Opened(tlsprof_evidence::sample::opening(Role::Client));
    ledger.write().unwrap().book("build", &opened);
    assert_eq!(activities(&metrics, "build"), (20, 1000));
}

#[test]
fn a_service_that_listens_has_all_activities_before_anybody_comes() {
    let ledger = SharedLedger::default();
    let metrics = Metrics::new(&ledger);
    {
        let mut ledger = ledger.write().unwrap();
        ledger.set_sampling(Sampling::Every(Duration::from_millis(10)));
        ledger.add_cpu("server", Duration::from_millis(10), Duration::ZERO);
        let mut queues = AcceptQueues::default();
        queues.add(
            Queue {
                length: 0,
                limit: 511,
            },
            0,
        );
        ledger.record_accept_queues(&BTreeMap::from([("server".to_owned(), queues)]));
    }
    assert_eq!(activities(&metrics, "server").0, 20);
    // Once it has, it always has.
    ledger
        .write()
        .unwrap()
        .record_accept_queues(&BTreeMap::new());
    assert_eq!(activities(&metrics, "server").0, 20);
}

#[test]
fn before_any_load_test_none_has_a_time() {
    let metrics = Metrics::new(&SharedLedger::default());
    let text = String::from_utf8(metrics.encode(Format::OpenMetrics).unwrap()).unwrap();
    assert!(text.contains("tlsprof_report_running{} 0"));
    assert!(!text.contains("tlsprof_report_start_time_seconds{"));
}

#[test]
fn without_samples_no_activity_is_made_up() {
    let ledger = SharedLedger::default();
    let metrics = Metrics::new(&ledger);
    book(&ledger, &metrics, "nginx.service");
    let second = Duration::from_secs(1);
    ledger
        .write()
        .unwrap()
        .add_cpu("nginx.service", second, second);
    let text = String::from_utf8(metrics.encode(Format::OpenMetrics).unwrap()).unwrap();
    assert!(text.contains("tlsprof_service_cpu_seconds_total{"));
    assert!(text.contains("tlsprof_cpu_sample_period_seconds{} 0.0"));
    for metric in [
        "seconds_total",
        "samples_total",
        "sampled_ratio",
        "reconciliation_error_ratio",
    ] {
        assert!(
            !text.contains(&format!("tlsprof_cpu_{metric}{{")),
            "{metric}"
        );
    }
}

#[test]
fn every_metric_is_documented() {
    let documented = include_str!("../../../../docs/metrics.md");
    for line in text(Format::PlainText).lines() {
        if let Some(name) = line
            .strip_prefix("# TYPE ")
            .and_then(|rest| rest.split(' ').next())
        {
            assert!(documented.contains(&format!("`{name}`")), "{name}");
        }
    }
}

#[test]
fn protobuf_has_native_histograms() {
    let families = prometheus_protobuf::encode(&metrics().registry).unwrap();
    let family = families
        .iter()
        .find(|family| family.name == "tlsprof_handshake_cpu_seconds")
        .unwrap();
    let histogram = family.metric.first().unwrap().histogram.as_ref().unwrap();
    assert_eq!(histogram.sample_count, 3);
    assert_eq!(histogram.schema, 3);
    assert!(!histogram.positive_span.is_empty());
    assert_eq!(histogram.bucket.len(), CPU_BUCKETS.len() + 1);
}

#[test]
fn services_beyond_the_limit_share_histograms() {
    let ledger = Ledger::new(tlsprof_ledger::Limits {
        services: 1,
        label_sets: 10,
    });
    let ledger = Arc::new(RwLock::new(ledger));
    let metrics = Metrics::new(&ledger);
    for service in ["a", "b", "c"] {
        book(&ledger, &metrics, service);
    }
    let text = String::from_utf8(metrics.encode(Format::PlainText).unwrap()).unwrap();
    assert!(!text.contains("service_name=\"b\""));
    assert!(text.contains(
        "tlsprof_handshake_cpu_seconds_count{service_name=\"other\",role=\"server\",\
         resumption=\"none\"} 2"
    ));
}

/// promtool 2.x reads Prometheus text, not OpenMetrics.
#[test]
fn promtool_finds_nothing_to_complain_about() {
    let spawned = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = spawned else {
        eprintln!("skipped: there is no promtool (Debian package prometheus)");
        return;
    };
    let mut stdin = promtool.stdin.take().unwrap();
    stdin.write_all(text(Format::PlainText).as_bytes()).unwrap();
    drop(stdin);
    let output = promtool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
