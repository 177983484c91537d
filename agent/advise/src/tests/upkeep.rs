//! What connections and processes cost by samples.

use std::time::Duration;

use super::{ENOUGH, SERVICE, find, handshake, ledger, likely_seconds};
use crate::{Finding, Prediction};
use tlsprof_common::{ProcessEvent, Resumption, Role, Whole};
use tlsprof_evidence::activity::{Activity, Mode, Upkeep};
use tlsprof_evidence::sample::{connection, opening};
use tlsprof_evidence::{Estimate, Handshake};
use tlsprof_ledger::{Ledger, Sampling};

const PERIOD: Duration = Duration::from_millis(10);

/// Connections without TLS that the server closes after so many turns. Of a thousand
/// samples `tcp` are in each of opening and closing, the rest in the application.
fn plain(number: u64, turns: u32, tcp: u64) -> Ledger {
    let mut kept = ledger(number, |ledger| {
        let one = connection();
        let whole = one.whole.map(|whole| Whole {
            turns: Some(turns),
            ..whole
        });
        ledger.record_opening(SERVICE, &opening(Role::Server));
        ledger.record_connection(SERVICE, &tlsprof_common::Connection { whole, ..one });
    });
    kept.set_sampling(Sampling::Every(PERIOD));
    kept.add_samples(SERVICE, Activity::TcpOpen, Mode::System, tcp);
    kept.add_samples(SERVICE, Activity::TcpClose, Mode::System, tcp);
    kept.add_samples(SERVICE, Activity::Application, Mode::User, 1000 - 2 * tcp);
    kept
}

fn closed_after_n(ledger: Ledger) -> Option<Finding> {
    find(ledger, 10.0, "connections-closed-after-n-turns")
}

#[test]
fn connections_without_tls_save_their_opening_and_closing() {
    // 100 requests in place of 5 leave a twentieth of 200 of 1,000 samples of 10 s.
    let finding = closed_after_n(plain(500, 5, 100)).unwrap();
    assert!((likely_seconds(&finding) - 1.9).abs() < 1e-9);
    let saving = finding.prediction.saving().unwrap();
    assert!(saving.method.starts_with("Estimate: kernel CPU"));
    assert!(saving.cpu.low < 1.9 && saving.cpu.high > 1.9);
    let shares: Vec<f64> = saving.variants.iter().map(|one| one.share.likely).collect();
    for (share, expected) in shares.iter().zip([0.1, 0.175, 0.19]) {
        assert!((share - expected).abs() < 1e-9, "{shares:?}");
    }
    // 5% of 10 s at 95% are 52.6 samples.
    assert!(closed_after_n(plain(500, 5, 27)).is_some());
    assert_eq!(closed_after_n(plain(500, 5, 26)), None);
}

/// As `plain`, with a resumed handshake of so many milliseconds in each.
fn resumed(milliseconds: u64) -> Ledger {
    resumed_and_estimated(milliseconds, None)
}

fn resumed_and_estimated(milliseconds: u64, estimate: Option<Estimate>) -> Ledger {
    let mut kept = plain(500, 5, 100);
    let one = Handshake {
        resumption: Resumption::SessionId,
        cpu: Duration::from_millis(milliseconds),
        estimate,
        ..handshake("x25519", "none", [0, 0])
    };
    for _ in 0..500 {
        kept.record(SERVICE, &one);
    }
    kept
}

#[test]
fn the_own_code_of_a_connection_is_estimated_from_resumed_handshakes() {
    let of = |milliseconds| {
        let finding = closed_after_n(resumed(milliseconds)).unwrap();
        let saving = finding.prediction.saving().unwrap().clone();
        assert!(saving.method.contains("is estimated"), "{}", saving.method);
        saving.cpu.likely / 0.95
    };
    // 2 s for TCP as without TLS, and 500 handshakes with a quarter more.
    assert!((of(2) - (2.0 + 1.25)).abs() < 1e-9);
    // Handshakes of 20 s in a service of 10 s: the accounts disagree.
    let contradictory = closed_after_n(resumed(40)).unwrap();
    assert_eq!(contradictory.prediction.saving(), None);
}

#[test]
fn estimated_handshakes_agree_if_the_least_that_they_may_be_does() {
    let agrees = |error: f64| {
        let estimate = Estimate {
            cpu_variance: error.powi(2) / 500.0,
            ..Estimate::default()
        };
        let finding = closed_after_n(resumed_and_estimated(40, Some(estimate))).unwrap();
        !matches!(finding.prediction, Prediction::Unknown(why) if why.contains("exceeds"))
    };
    // 20 s in a service of 10 s, at least 9.8 and 11.2 s.
    assert_eq!((agrees(5.2), agrees(4.5)), (true, false));
}

#[test]
fn threads_of_connections_are_saved_with_them() {
    let mut kept = plain(500, 1, 50);
    kept.note_upkeep(SERVICE, Upkeep::Process, 100);
    let finding = find(kept.clone(), 10.0, "keep-alive-off").unwrap();
    assert!((likely_seconds(&finding) - 2.0 * 0.99).abs() < 1e-9);
    let text = finding.evidence.statements.join(" ");
    assert!(
        text.contains(": 4.00 ms in") && text.contains("including 2.00 ms"),
        "{text}"
    );
    // One process for ten connections: nobody knows what for.
    for child in 0..50 {
        kept.record_process(SERVICE, &fork(child));
    }
    let finding = find(kept, 10.0, "keep-alive-off").unwrap();
    assert!((likely_seconds(&finding) - 0.99).abs() < 1e-9);
}

#[test]
fn softirqs_are_named_and_not_in_the_saving() {
    let mut kept = plain(500, 5, 100);
    kept.add_samples(SERVICE, Activity::TcpClose, Mode::Softirq, 50);
    let finding = closed_after_n(kept).unwrap();
    assert!((likely_seconds(&finding) - 1.9).abs() < 1e-9);
    let text = finding.evidence.statements.join(" ");
    assert!(text.contains("about 1.00 ms in softirq"), "{text}");
}

fn fork(child: u32) -> ProcessEvent {
    ProcessEvent::Fork {
        parent: 1,
        child: 100 + child,
        comm: "server".into(),
    }
}

/// As many processes as connections; so many of a thousand samples are their upkeep.
fn forking(number: u64, upkeep: u64) -> Ledger {
    let mut kept = plain(number, 1, 0);
    for child in 0..u32::try_from(number).unwrap() {
        kept.record_process(SERVICE, &fork(child));
    }
    kept.note_upkeep(SERVICE, Upkeep::Start, upkeep / 2);
    kept.note_upkeep(SERVICE, Upkeep::Process, upkeep - upkeep / 2);
    kept
}

#[test]
fn processes_cost_their_upkeep_at_least() {
    let id = "process-per-connection";
    assert_eq!(find(forking(ENOUGH - 1, 500), 10.0, id), None);
    let finding = find(forking(ENOUGH, 500), 10.0, id).unwrap();
    let saving = finding.prediction.saving().unwrap();
    assert!((saving.cpu.likely - 5.0).abs() < 1e-9);
    assert!(saving.cpu.low < 5.0 && saving.cpu.high > 9.9);
    assert!(find(forking(ENOUGH, 50), 10.0, id).is_some());
    assert_eq!(find(forking(ENOUGH, 49), 10.0, id), None, "not worth it");
}

/// Two times 10 s: half of the first are upkeep, and none of the second, which has five times the samples.
#[test]
fn upkeep_is_by_time_where_the_rate_of_samples_changes() {
    let mut kept = forking(ENOUGH, 500);
    let ten_seconds = Duration::from_secs(10);
    kept.add_cpu(SERVICE, ten_seconds, Duration::ZERO);
    kept.set_sampling(Sampling::Every(PERIOD / 5));
    kept.add_samples(SERVICE, Activity::Application, Mode::User, 5000);
    let finding = find(kept, 10.0, "process-per-connection").unwrap();
    assert!((likely_seconds(&finding) - 5.0).abs() < 1e-6);
}

#[test]
fn page_faults_in_handshakes_are_upkeep_of_processes() {
    let mut kept = forking(ENOUGH, 100);
    kept.note_upkeep(SERVICE, Upkeep::HandshakeMemory, 50);
    let finding = find(kept, 10.0, "process-per-connection").unwrap();
    assert!((likely_seconds(&finding) - 1.5).abs() < 1e-9);
    assert!(matches!(finding.prediction, Prediction::Saving(_)));
}
