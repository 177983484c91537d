//! The server over real sockets.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{Read, Write};
use std::net::TcpStream as Client;

use super::*;
use crate::metrics::SharedLedger;
use crate::metrics::sample::book;

/// Short, so that tests of them are.
const BOUNDS: Bounds = Bounds {
    connections: 16,
    handshake: Duration::from_millis(500),
    head: Duration::from_millis(500),
    head_bytes: 16 * 1024,
    connection: Duration::from_secs(2),
};

fn start(access: Access, bounds: Bounds) -> Server {
    let ledger = SharedLedger::default();
    let metrics = Arc::new(Metrics::new(&ledger));
    book(&ledger, &metrics, "nginx.service");
    start_with(metrics, access, bounds)
}

fn start_with(metrics: Arc<Metrics>, access: Access, bounds: Bounds) -> Server {
    let watch = live::watch(0);
    let shown = Shown { metrics, watch };
    Server::start_bounded(([127, 0, 0, 1], 0).into(), &shown, access, bounds).unwrap()
}

fn server() -> Server {
    start(Access::open(), Bounds::default())
}

/// Sends `request` and returns all that comes back until the server closes.
fn exchange(server: &Server, request: &[u8]) -> Vec<u8> {
    let mut client = Client::connect(server.address()).unwrap();
    client.write_all(request).unwrap();
    let mut answer = Vec::new();
    // A reset after a refused request is as good an end as any.
    let _ = client.read_to_end(&mut answer);
    answer
}

fn fetch(server: &Server, path: &str, accept: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n");
    String::from_utf8_lossy(&exchange(server, request.as_bytes())).into_owned()
}

#[test]
fn the_accept_header_chooses_the_format() {
    let server = server();
    let plain = fetch(&server, "/metrics", "*/*");
    assert!(plain.starts_with("HTTP/1.1 200 OK"), "{plain}");
    assert!(plain.contains("content-type: text/plain; version=0.0.4"));
    assert!(plain.contains("# TYPE tlsprof_handshakes_total counter"));
    assert!(!plain.contains("# EOF"));

    let open = fetch(
        &server,
        "/metrics",
        "application/openmetrics-text;version=1.0.0",
    );
    assert!(open.contains("content-type: application/openmetrics-text; version=1.0.0"));
    assert!(open.contains("# TYPE tlsprof_handshakes counter"));
    assert!(open.ends_with("# EOF\n"));

    let accept = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
                  encoding=delimited;q=0.7,text/plain;q=0.3";
    let protobuf = fetch(&server, "/metrics", accept);
    assert!(protobuf.contains("content-type: application/vnd.google.protobuf"));
    assert!(protobuf.contains("tlsprof_handshakes_total"));
    server.stop();
}

#[test]
fn an_answer_is_compressed_for_those_who_ask_for_it() {
    let server = server();
    let request = b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n";
    let answer = exchange(&server, request);
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let (head, body) = answer.split_at(end.unwrap() + 4);
    let head = String::from_utf8_lossy(head);
    assert!(head.contains("content-encoding: gzip"), "{head}");
    assert!(head.contains("vary: accept, accept-encoding"), "{head}");
    let mut text = String::new();
    let mut decoder = flate2::read::GzDecoder::new(body);
    decoder.read_to_string(&mut text).unwrap();
    assert!(text.contains("tlsprof_handshakes_total{"));
    let plain = fetch(&server, "/metrics", "*/*");
    assert!(!plain.contains("content-encoding"));
    server.stop();
}

#[test]
fn other_paths() {
    let server = server();
    assert!(fetch(&server, "/-/healthy", "*/*").ends_with("healthy\n"));
    let missing = fetch(&server, "/nothing", "*/*");
    assert!(missing.starts_with("HTTP/1.1 404"));
    assert!(missing.contains("Try / or /metrics."));
    let posted = exchange(&server, b"POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(posted.starts_with(b"HTTP/1.1 405"));
    server.stop();
}

#[test]
fn it_is_ready_once_the_profile_is_under_way() {
    let server = server();
    let before = fetch(&server, "/-/ready", "*/*");
    assert!(before.starts_with("HTTP/1.1 503"), "{before}");
    server.set_ready();
    let after = fetch(&server, "/-/ready", "*/*");
    assert!(after.starts_with("HTTP/1.1 200"), "{after}");
    server.stop();
}

#[test]
fn a_huge_head_is_refused() {
    let server = server();
    let mut request = b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: ".to_vec();
    request.resize(BOUNDS.head_bytes * 2, b'a');
    let answer = exchange(&server, &request);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"));
    assert!(fetch(&server, "/-/healthy", "*/*").contains("healthy"));
    server.stop();
}

#[test]
fn nonsense_does_no_harm() {
    let server = server();
    exchange(
        &server,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    );
    assert!(fetch(&server, "/-/healthy", "*/*").contains("healthy"));
    server.stop();
}

#[test]
fn an_address_in_use_is_named_with_what_to_do() {
    let first = server();
    let metrics = Arc::new(Metrics::new(&SharedLedger::default()));
    let shown = Shown {
        metrics,
        watch: live::watch(0),
    };
    let error = Server::start(first.address(), &shown, Access::open())
        .unwrap_err()
        .to_string();
    let address = first.address();
    assert!(
        error.starts_with(&format!("cannot serve metrics on {address}: ")),
        "{error}"
    );
    assert!(error.contains("--listen"));
    first.stop();
}

#[test]
fn a_stopped_server_frees_its_address() {
    let server = server();
    let address = server.address();
    server.stop();
    assert!(Client::connect(address).is_err());
}

mod hostile;
mod live;
mod secure;
