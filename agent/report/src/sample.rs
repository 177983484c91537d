//! A profile as it may come from a real host, for tests of the outlets.

mod ledger;

use std::collections::BTreeMap;
use std::time::Duration;

use tlsprof_advise::{Calibrations, Finding, Setting, Thresholds, advise};
pub use tlsprof_evidence::sample::{connection, handshake};
use tlsprof_ledger::Ledger;

use super::model::{AgentCost, Command, Host, Loss, Report, TlsLibrary};
use super::{Facts, ServiceFacts, build};
use ledger::lose_samples;
pub use ledger::{ledger, record_queues};

/// What is known of the host and of its services.
pub(crate) fn facts() -> Facts {
    Facts {
        host: Host {
            hostname: "web1".into(),
            kernel: "6.12.43+deb13-amd64".into(),
            cpus: 4,
        },
        started_at: "2026-05-04T09:30:00Z".into(),
        duration: Duration::from_secs(30),
        services: services(),
        findings: Vec::new(),
        losses: vec![
            Loss {
                reason: tlsprof_common::Loss::EventRingFull,
                count: 0,
            },
            Loss {
                reason: tlsprof_common::Loss::BeganBeforeAttach,
                count: 3,
            },
        ],
        agent: AgentCost {
            cpu_seconds: 0.21,
            memory_bytes: 23_400_000,
            bpf_run_seconds: 0.061,
            bpf_runs: 151_200,
            probe_hits: 148_900,
            target_seconds: 0.262,
            profiled_seconds: 0.131,
        },
        command: None,
        requests: None,
        notes: Vec::new(),
    }
}

fn services() -> BTreeMap<String, ServiceFacts> {
    let openssl = |state: &str| TlsLibrary {
        kind: "OpenSSL".into(),
        version: "3.0.17".into(),
        path: "/usr/lib/x86_64-linux-gnu/libssl.so.3".into(),
        build_id: "0f1e2d3c".into(),
        state: state.into(),
    };
    let service = |executable: &str, processes, ports: &[u16], library: TlsLibrary| ServiceFacts {
        executable: executable.into(),
        processes,
        ports: ports.to_vec(),
        tls_libraries: vec![library],
        ..ServiceFacts::default()
    };
    BTreeMap::from([
        (
            "nginx.service".into(),
            service("/usr/sbin/nginx", 5, &[443, 8443], openssl("profiled")),
        ),
        (
            "orders-api.service".into(),
            service("/usr/bin/python3.11", 1, &[8000], openssl("profiled")),
        ),
        (
            "domino.service".into(),
            ServiceFacts {
                executable: "/opt/hcl/domino/notes/latest/linux/http".into(),
                processes: 1,
                ports: vec![443],
                ..ServiceFacts::default()
            },
        ),
        (
            "sshd.service".into(),
            service("/usr/sbin/sshd", 1, &[22], openssl("uses libcrypto only")),
        ),
    ])
}

/// The report of that half minute, with what the rules find in it.
pub fn report() -> Report {
    let (facts, ledger) = (facts(), ledger());
    let findings = findings_of(&facts, &ledger);
    let facts = Facts {
        findings,
        ..facts.clone()
    };
    build(facts, &ledger)
}

/// What is wrong with the services of that profile.
pub fn findings() -> Vec<Finding> {
    findings_of(&facts(), &ledger())
}

fn findings_of(facts: &Facts, ledger: &Ledger) -> Vec<Finding> {
    let about = |name: &str| facts.services.get(name).map(ServiceFacts::about);
    let none = Calibrations::new();
    advise(
        ledger,
        &none,
        about,
        Setting {
            elapsed: facts.duration,
            aes_in_hardware: true,
            client_closes: None,
        },
        Thresholds::default(),
    )
}

/// The same with lost events and samples, connections that stay open, and a command.
pub fn lossy_report() -> Report {
    let losses = vec![
        Loss {
            reason: tlsprof_common::Loss::EventRingFull,
            count: 1234,
        },
        Loss {
            reason: tlsprof_common::Loss::HandshakeTableFull,
            count: 2,
        },
    ];
    let command = Command {
        arguments: ["wrk", "-d", "30s", "https://localhost/"]
            .map(String::from)
            .into(),
        exit_status: 1,
    };
    let mut ledger = ledger();
    lose_samples(&mut ledger);
    let mut facts = facts();
    facts.losses = losses;
    facts.command = Some(command);
    build(facts, &ledger)
}

/// A report in which nothing happened.
pub fn silent_report() -> Report {
    build(facts(), &Ledger::default())
}
