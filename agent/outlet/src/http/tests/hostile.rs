//! Clients that hold on to what they get: others are served all the same.

use std::io::ErrorKind;
use std::thread;

use super::secure::{Certificate, folder};
use super::*;

/// Connections that have sent this and then nothing.
fn stalled(server: &Server, count: u32, sent: &[u8]) -> Vec<Client> {
    let connect = |_| {
        let mut client = Client::connect(server.address()).unwrap();
        client.write_all(sent).unwrap();
        client
    };
    (0..count).map(connect).collect()
}

/// All places are taken by connections that are stalled like this: a healthy one
/// is served when their time is over.
fn assert_outlived(sent: &[u8]) {
    let server = start(Access::open(), BOUNDS);
    let stalled = stalled(&server, BOUNDS.connections, sent);
    assert!(fetch(&server, "/-/healthy", "*/*").contains("healthy"));
    drop(stalled);
    server.stop();
}

#[test]
fn idle_connections_leave_when_their_time_is_over() {
    assert_outlived(b"");
}

#[test]
fn half_a_head_is_not_waited_for() {
    assert_outlived(b"GET /metrics HTTP/1.1\r\nHost: x\r\n");
}

#[test]
fn a_head_that_trickles_in_is_not_waited_for() {
    let server = start(Access::open(), BOUNDS);
    let mut client = Client::connect(server.address()).unwrap();
    client.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    client.set_read_timeout(Some(BOUNDS.head / 20)).unwrap();
    // A byte at a time until the server has enough of it.
    let ended = (0..1000).any(|_| {
        let sent = client.write_all(b"a");
        let read = client.read(&mut [0; 512]);
        let waits = matches!(&read, Err(error) if error.kind() == ErrorKind::WouldBlock);
        sent.is_err() || !waits
    });
    assert!(ended);
    server.stop();
}

#[test]
fn half_open_tls_handshakes_leave_when_their_time_is_over() {
    let folder = folder(&[Certificate::new("localhost")], "");
    let access = Access::from_file(&folder.path().join("web.yml")).unwrap();
    let server = start(access, BOUNDS);
    // The beginning of a ClientHello of 508 bytes.
    let stalled = stalled(
        &server,
        BOUNDS.connections,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    );
    let mut client = Client::connect(server.address()).unwrap();
    client.write_all(b"no TLS at all").unwrap();
    // It is accepted when a place is free, and answered by an alert.
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer);
    assert_eq!(answer.first(), Some(&21), "{answer:?}");
    drop(stalled);
    server.stop();
}

#[test]
fn a_huge_request_line_is_refused() {
    let server = start(Access::open(), BOUNDS);
    let mut request = b"GET /".to_vec();
    request.resize(1024 * 1024, b'a');
    let mut client = Client::connect(server.address()).unwrap();
    // The server does not read it to its end.
    let _ = client.write_all(&request);
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"));
    assert!(fetch(&server, "/-/healthy", "*/*").contains("healthy"));
    server.stop();
}

#[test]
fn a_thousand_scrapes_at_once_are_all_answered() {
    let server = start(Access::open(), Bounds::default());
    thread::scope(|scope| {
        let scrapers: Vec<_> = (0..20)
            .map(|_| {
                scope.spawn(|| {
                    let whole = |answer: &String| answer.ends_with("# EOF\n");
                    let accept = "application/openmetrics-text";
                    let answers = (0..50).map(|_| fetch(&server, "/metrics", accept));
                    answers.filter(whole).count()
                })
            })
            .collect();
        let answered: usize = scrapers.into_iter().map(|one| one.join().unwrap()).sum();
        assert_eq!(answered, 1000);
    });
    server.stop();
}

#[test]
fn answers_that_nobody_reads_are_dropped_in_time() {
    let ledger = SharedLedger::default();
    let metrics = Arc::new(Metrics::new(&ledger));
    // Longer than what the kernel keeps for a connection: about 8 MB.
    for n in 0..3000 {
        let service = format!("{}-{n}", "a-service-with-a-long-name".repeat(3));
        let seconds = Duration::from_secs(1);
        ledger.write().unwrap().add_cpu(&service, seconds, seconds);
    }
    let server = start_with(metrics, Access::open(), BOUNDS);
    let request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    let hung = stalled(&server, BOUNDS.connections, request);
    assert!(fetch(&server, "/metrics", "*/*").contains("tlsprof_build_info"));
    drop(hung);
    server.stop();
}
