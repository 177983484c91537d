//! What handshakes, hellos and findings become.

use super::*;
use tlsprof_evidence::primitive::{Evidence as Proof, Primitive};

/// One series for each set of labels, whatever the source.
#[test]
fn handshakes_of_two_sources_are_one_series() {
    let ledger = SharedLedger::default();
    let metrics = Metrics::new(&ledger);
    {
        let mut ledger = ledger.write().unwrap();
        let library = sample::handshake();
        let socket = Handshake {
            source: Source::Socket,
            flights: Some([Duration::from_micros(1250), Duration::from_micros(100)]),
            ..library.clone()
        };
        let offloaded = Handshake {
            offloaded: true,
            ..socket.clone()
        };
        for handshake in [&library, &library, &socket, &offloaded] {
            ledger.record("nginx", handshake);
        }
        let comparison = Comparison {
            process: 1,
            comm: "nginx".into(),
            role: Role::Server,
            began: Duration::ZERO,
            connection: None,
            library: Duration::from_millis(2),
            socket: Duration::from_millis(3),
        };
        ledger.record_comparison("nginx", &comparison);
    }
    let text = String::from_utf8(metrics.encode(Format::PlainText).unwrap()).unwrap();
    let total = text
        .lines()
        .filter(|line| line.starts_with("tlsprof_handshakes_total{"));
    assert_eq!(total.count(), 1);
    for line in [
        "resumption=\"none\",outcome=\"completed\"} 4\n",
        "tlsprof_handshakes_by_source_total{service_name=\"nginx\",role=\"server\",source=\"library\"} 2",
        "tlsprof_handshakes_by_source_total{service_name=\"nginx\",role=\"server\",source=\"socket\"} 2",
        "tlsprof_handshakes_offloaded_total{service_name=\"nginx\",role=\"server\"} 1",
        "tlsprof_handshake_step_cpu_seconds_total{service_name=\"nginx\",role=\"server\",step=\"unmeasured\"} 0.0027",
        "tlsprof_handshake_outcome_cpu_seconds_total{service_name=\"nginx\",role=\"server\",outcome=\"completed\"} 0.0054",
        "tlsprof_handshake_outcome_cpu_seconds_total{service_name=\"nginx\",role=\"server\",outcome=\"failed\"} 0",
        "tlsprof_handshake_flight_cpu_seconds_total{service_name=\"nginx\",role=\"server\",flight=\"last\"} 0.0002",
        "tlsprof_agreement_handshakes_total{service_name=\"nginx\",role=\"server\"} 1",
        "tlsprof_agreement_cpu_seconds_total{service_name=\"nginx\",role=\"server\",source=\"socket\"} 0.003",
    ] {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
}

#[test]
fn steps_have_both_sources_once_samples_are_looked_up() {
    let ledger = SharedLedger::default();
    let metrics = Metrics::new(&ledger);
    let both = || -> Vec<String> {
        let text = String::from_utf8(metrics.encode(Format::PlainText).unwrap()).unwrap();
        let lines = text.lines();
        let ours =
            lines.filter(|line| line.starts_with("tlsprof_agreement_step_cpu_seconds_total{"));
        ours.map(str::to_owned).collect()
    };
    {
        let mut ledger = ledger.write().unwrap();
        ledger.set_sampling(Sampling::Every(Duration::from_millis(1)));
        ledger.record("nginx", &sample::handshake());
        ledger.add_samples("nginx", Activity::Handshake, Mode::User, 1);
        ledger.add_cpu("nginx", Duration::from_millis(1), Duration::ZERO);
    }
    assert_eq!(both(), Vec::<String>::new());
    let signing = (Activity::Handshake, Primitive::RsaDh, Proof::Name, None);
    let counts = BTreeMap::from([(signing, 1)]);
    ledger.write().unwrap().note_primitives("nginx", &counts);
    let row = |step: &str, source: &str, seconds: &str| {
        format!(
            "tlsprof_agreement_step_cpu_seconds_total{{service_name=\"nginx\",step=\"{step}\",source=\"{source}\"}} {seconds}"
        )
    };
    let expected = [
        row("key_exchange", "library", "0.000118"),
        row("key_exchange", "samples", "0.0"),
        row("signing", "library", "0.000905"),
        row("signing", "samples", "0.001"),
        row("other", "library", "0.000327"),
        row("other", "samples", "0.0"),
    ];
    assert_eq!(both(), expected);
}

#[test]
fn what_hellos_say_is_exported() {
    let ledger = SharedLedger::default();
    let metrics = Metrics::new(&ledger);
    for (role, fixture) in [
        (Role::Server, "openssl30-tls13-psk-refused"),
        (Role::Server, "openssl30-no-common-cipher"),
        (Role::Client, "openssl30-no-common-cipher"),
    ] {
        let handshake = Handshake {
            role,
            hello: fixture::fed(fixture::read(fixture).whole()).into_facts(),
            ..sample::handshake()
        };
        ledger.write().unwrap().record("nginx", &handshake);
    }
    let connection = Connection {
        carries: Carries::Tls,
        cipher: "TLS_AES_128_GCM_SHA256",
        application_sent: 77,
        ..sample::connection()
    };
    ledger
        .write()
        .unwrap()
        .record_connection("nginx", &connection);
    let text = String::from_utf8(metrics.encode(Format::PlainText).unwrap()).unwrap();
    for line in [
        "tlsprof_hellos_total{service_name=\"nginx\",role=\"server\"} 2",
        "tlsprof_resumption_attempts_total{service_name=\"nginx\",role=\"server\",means=\"psk\",attempt=\"refused\"} 1",
        "tlsprof_offered_versions_total{service_name=\"nginx\",role=\"server\",version=\"TLS1.3\"} 1",
        "tlsprof_alerts_total{service_name=\"nginx\",direction=\"sent\",description=\"handshake_failure\"} 1",
        "tlsprof_alerts_total{service_name=\"nginx\",direction=\"received\",description=\"handshake_failure\"} 1",
        "tlsprof_application_bytes_total{service_name=\"nginx\",direction=\"sent\",cipher=\"TLS_AES_128_GCM_SHA256\"} 77",
    ] {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
}

#[test]
fn findings_come_and_go() {
    let metrics = metrics();
    let mut worse = sample::findings();
    worse.extend(sample::findings());
    metrics.set_findings(&worse);
    let findings = || -> Vec<String> {
        let text = String::from_utf8(metrics.encode(Format::PlainText).unwrap()).unwrap();
        let lines = text.lines();
        let ours = lines.filter(|line| line.starts_with("tlsprof_finding{"));
        ours.map(str::to_owned).collect()
    };
    let standing = findings();
    assert_eq!(standing.len(), sample::findings().len(), "{standing:?}");
    let line = "tlsprof_finding{service_name=\"nginx.service\",role=\"server\",finding=\"connections-closed-after-n-turns\",severity=\"";
    let found = standing.iter().find(|found| found.starts_with(line));
    assert!(
        found.is_some_and(|found| found.ends_with("\"} 1")),
        "{standing:?}"
    );
    metrics.set_findings(&[]);
    assert_eq!(findings(), Vec::<String>::new());
}
