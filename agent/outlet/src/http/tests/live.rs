//! The live page and its interface.
#![allow(clippy::indexing_slicing, reason = "a failed test should stop")]

use serde_json::Value;

use super::*;
use crate::watch::{About, Bounds as WatchBounds, Watch};
use tlsprof_common::Role;
use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_evidence::sample::{connection, handshake, opening};
use tlsprof_evidence::{Evidence, Handshake};
use tlsprof_ledger::{Ledger, Sampling};
use tlsprof_report::model::{AgentCost, Host, Loss};

/// So many services, each with a hundred kinds of handshakes, after 13 readings of 5 s.
pub(super) fn watch(services: usize) -> SharedWatch {
    let about = About {
        run: "run-1".into(),
        tlsprof_version: "0.0.0".into(),
        host: Host {
            hostname: "web1".into(),
            kernel: "6.12".into(),
            cpus: 2,
        },
        started_at: "2026-11-21T12:00:00Z".into(),
    };
    let shared = SharedLedger::default();
    let mut watch = Watch::new(SharedLedger::clone(&shared), about, WatchBounds::default());
    let sampling = Sampling::Every(Duration::from_millis(10));
    shared.write().unwrap().set_sampling(sampling);
    for reading in 1..=13 {
        let mut ledger = shared.write().unwrap();
        for service in 0..services {
            book(&mut ledger, &format!("service-{service}"));
        }
        let at = Duration::from_secs(5 * reading);
        ledger.advance(at);
        drop(ledger);
        let losses = vec![Loss {
            reason: tlsprof_common::Loss::EventRingFull,
            count: reading,
        }];
        watch.read(at, AgentCost::default(), losses);
    }
    SharedWatch::new(watch.into())
}

fn book(ledger: &mut Ledger, service: &str) {
    let ciphers = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"];
    let groups = ["x25519", "secp256r1", "secp384r1", "secp521r1", "x448"];
    for (cipher, group) in ciphers
        .iter()
        .flat_map(|one| groups.map(|group| (one, group)))
    {
        for role in [Role::Server, Role::Client] {
            let one = Handshake {
                cipher,
                group,
                role,
                ..handshake()
            };
            let all = [
                Evidence::Opened(opening(role)),
                Evidence::Handshake(Box::new(one)),
                Evidence::Closed(Box::new(connection())),
            ];
            for evidence in &all {
                ledger.book(service, evidence);
            }
        }
    }
    for activity in Activity::ALL {
        ledger.add_samples(service, activity, Mode::User, 3);
    }
    let part = Duration::from_millis(500);
    ledger.add_cpu(service, part, part);
}

fn serving(services: usize) -> Server {
    let shown = Shown {
        metrics: Arc::new(Metrics::new(&SharedLedger::default())),
        watch: watch(services),
    };
    Server::start(([127, 0, 0, 1], 0).into(), &shown, Access::open()).unwrap()
}

fn ask(server: &Server, path: &str, headers: &str) -> String {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n",
        server.address()
    );
    String::from_utf8_lossy(&exchange(server, request.as_bytes())).into_owned()
}

fn state(server: &Server, query: &str) -> Value {
    let answer = ask(server, &format!("/api/v1/state{query}"), "");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-type: application/json"), "{head}");
    serde_json::from_str(body).unwrap()
}

#[test]
fn every_file_that_the_page_asks_for_is_served() {
    let server = serving(0);
    let page = ask(&server, "/", "");
    assert!(
        page.contains("content-type: text/html; charset=utf-8"),
        "{page}"
    );
    let mut seen = 0;
    for part in page.split("\"/assets/").skip(1) {
        let name = part.split('"').next().unwrap();
        let answer = ask(&server, &format!("/assets/{name}"), "");
        assert!(answer.starts_with("HTTP/1.1 200"), "{name}: {answer}");
        seen += 1;
    }
    assert!(seen > 3, "{page}");
    assert!(ask(&server, "/assets/../api.rs", "").starts_with("HTTP/1.1 404"));
    server.stop();
}

#[test]
fn every_finding_has_a_page_with_links_that_are_served() {
    let server = serving(0);
    for kind in tlsprof_advise::Kind::all() {
        let page = ask(&server, &format!("/findings/{}", kind.label), "");
        assert!(page.starts_with("HTTP/1.1 200"), "{kind:?}: {page}");
        assert!(page.contains("content-type: text/html"), "{page}");
        assert!(page.contains("<h2>What to change</h2>"), "{page}");
        for part in page.split("href=\"/").skip(1) {
            let path = part.split('"').next().unwrap();
            let answer = ask(&server, &format!("/{path}"), "");
            assert!(answer.starts_with("HTTP/1.1 200"), "{kind:?}: {path}");
        }
    }
    assert!(ask(&server, "/findings/none", "").starts_with("HTTP/1.1 404"));
    server.stop();
}

#[test]
fn a_browser_asks_again_and_gets_only_what_has_changed() {
    let server = serving(0);
    let first = ask(&server, "/assets/main.js", "");
    let tag = first
        .lines()
        .find_map(|line| line.strip_prefix("etag: "))
        .unwrap();
    let again = ask(
        &server,
        "/assets/main.js",
        &format!("If-None-Match: {tag}\r\n"),
    );
    assert!(again.starts_with("HTTP/1.1 304"), "{again}");
    let other = ask(&server, "/assets/main.js", "If-None-Match: \"old\"\r\n");
    assert!(other.starts_with("HTTP/1.1 200"));
    server.stop();
}

#[test]
fn nothing_of_other_hosts_runs_here_and_no_other_origin_reads_it() {
    let server = serving(0);
    for path in [
        "/",
        "/assets/main.js",
        "/api/v1/state",
        "/metrics",
        "/nothing",
    ] {
        let answer = ask(&server, path, "Origin: http://evil.example\r\n");
        assert!(
            answer.contains("content-security-policy: default-src 'none';"),
            "{path}"
        );
        assert!(answer.contains("x-content-type-options: nosniff"), "{path}");
        assert!(answer.contains("referrer-policy: no-referrer"), "{path}");
        assert!(!answer.to_lowercase().contains("access-control-"), "{path}");
    }
    let page = ask(&server, "/", "");
    assert!(
        !page.contains("<script>") && !page.contains("style="),
        "{page}"
    );
    let rebound = b"GET /api/v1/state HTTP/1.1\r\nHost: evil.example:9843\r\n\r\n";
    assert!(exchange(&server, rebound).starts_with(b"HTTP/1.1 421"));
    server.stop();
}

#[test]
fn the_state_has_all_services_and_a_selected_one_whole() {
    let server = serving(3);
    let all = state(&server, "");
    assert_eq!(all["run"], "run-1");
    assert_eq!(all["newest_point"], 13);
    assert_eq!(all["services"].as_array().unwrap().len(), 3);
    assert_eq!(all["services"][0]["cpu_cores"], 0.2);
    assert_eq!(all["services"][0]["roles"][0]["handshakes_per_second"], 2.0);
    assert_eq!(all["losses"][0]["count"], 13);
    assert_eq!(all["selected"], Value::Null);

    let one = state(&server, "?service=service-1&run=run-1&since=11");
    let series = &one["selected"]["series"];
    assert_eq!(series["first_point"], 12);
    assert_eq!(series["columns"]["cpu/user"], serde_json::json!([0.5, 0.5]));
    assert_eq!(
        one["selected"]["details"]["service"]["service_name"],
        "service-1"
    );

    let restarted = state(&server, "?service=service-1&run=run-0&since=11");
    assert_eq!(restarted["selected"]["series"]["first_point"], 1);
    let unknown = state(&server, "?service=%3Cb%3E&since=11");
    assert_eq!(unknown["selected"]["details"], Value::Null);
    assert!(ask(&server, "/api/v1/state?since=x", "").starts_with("HTTP/1.1 400"));
    server.stop();
}

#[test]
fn two_hundred_services_stay_below_a_megabyte() {
    let server = serving(200);
    let all = ask(&server, "/api/v1/state", "").len();
    assert!((100_000..1_000_000).contains(&all), "{all}");
    let one = ask(&server, "/api/v1/state?service=service-1", "").len();
    assert!(one < 1_000_000, "{one}");
    server.stop();
}

#[test]
fn the_same_answer_is_made_once() {
    let server = serving(1);
    let query = "/api/v1/state?service=service-0";
    // The header `date` may differ.
    let body = || {
        ask(&server, query, "")
            .split_once("\r\n\r\n")
            .map(|(_, body)| body.to_owned())
    };
    assert_eq!(body(), body());
    let packed = ask(&server, query, "Accept-Encoding: gzip\r\n");
    assert!(packed.contains("content-encoding: gzip"));
    server.stop();
}
