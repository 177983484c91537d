//! Connections, TIME_WAIT, ports, processes.
#![allow(clippy::indexing_slicing, reason = "tests")]

use std::time::Duration;

use super::{
    ENOUGH, NGINX, SERVICE, SETTING, check, find, found_in, handshake, ledger, likely_seconds,
};
use crate::{About, Calibration, Prediction, Setting, Severity, Thresholds, advise};
use tlsprof_common::{
    Closer, Connection, Opening, ProcessEvent, Remote, Role, TurnEstimate, Whole,
};
use tlsprof_evidence::Handshake;
use tlsprof_evidence::hello::{Facts, Offer};
use tlsprof_evidence::sample::{connection, opening};
use tlsprof_ledger::Ledger;

fn closed(role: Role, by: Closer, turns: u32) -> Connection {
    let one = connection();
    Connection {
        closed_by: by,
        whole: one.whole.map(|whole| Whole {
            role,
            turns: Some(turns),
            ..whole
        }),
        ..one
    }
}

/// Connections with a handshake of 1 ms each.
fn connections(number: u64, role: Role, by: Closer, turns: u32) -> Ledger {
    let one = Handshake {
        role,
        ..handshake("x25519", "rsa_2048", [100, 700])
    };
    ledger(number, |ledger| {
        ledger.record(SERVICE, &one);
        ledger.record_opening(SERVICE, &opening(role));
        ledger.record_connection(SERVICE, &closed(role, by, turns));
    })
}

#[test]
fn connections_closed_after_n_turns_at_its_thresholds() {
    // 100 ms of handshakes, of which 100 turns in place of 5 leave a twentieth.
    check("connections-closed-after-n-turns", 1.9, |n| {
        connections(n, Role::Server, Closer::Local, 5)
    });
}

#[test]
fn connections_whose_turns_nobody_knows_may_have_more() {
    let unknown = |number: u64| {
        let mut kept = connections(1000, Role::Server, Closer::Local, 1);
        for _ in 0..number {
            let mut one = closed(Role::Server, Closer::Local, 1);
            one.whole = one.whole.map(|whole| Whole {
                estimate: Some(TurnEstimate {
                    variance: 1.0,
                    is_mean: true,
                }),
                ..whole
            });
            kept.record_connection(SERVICE, &one);
        }
        kept
    };
    assert!(find(unknown(10), 2.0, "keep-alive-off").is_some());
    assert_eq!(find(unknown(11), 2.0, "keep-alive-off"), None);
}

#[test]
fn connections_closed_after_n_turns_predicts_for_each_limit() {
    let kept = connections(100, Role::Server, Closer::Local, 5);
    let finding = find(kept, 0.2, "connections-closed-after-n-turns").unwrap();
    assert!((likely_seconds(&finding) - 0.095).abs() < 1e-9);
    let variants = &finding.prediction.saving().unwrap().variants;
    let shares: Vec<(&str, f64)> = variants
        .iter()
        .map(|variant| (variant.change.as_str(), variant.share.likely))
        .collect();
    let expected = [
        ("10 requests per connection", 0.25),
        ("40 requests per connection", 0.4375),
        ("100 requests per connection", 0.475),
    ];
    assert_eq!(shares.len(), expected.len());
    for ((change, share), (expected, value)) in shares.iter().zip(expected) {
        assert_eq!(*change, expected);
        assert!((share - value).abs() < 1e-9, "{change}: {share}");
    }
    assert!(finding.title.contains("exactly 5 requests"));
}

#[test]
fn clients_that_close_are_no_finding() {
    for turns in [1, 5] {
        let kept = connections(1000, Role::Server, Closer::Remote, turns);
        assert_eq!(find(kept.clone(), 1.0, "keep-alive-off"), None);
        assert_eq!(find(kept, 1.0, "connections-closed-after-n-turns"), None);
    }
}

#[test]
fn a_number_of_turns_that_others_pass_is_no_limit() {
    let mut kept = connections(1000, Role::Server, Closer::Local, 5);
    for _ in 0..10 {
        kept.record_connection(SERVICE, &closed(Role::Server, Closer::Local, 6));
    }
    let id = "connections-closed-after-n-turns";
    assert!(find(kept.clone(), 1.0, id).is_some());
    kept.record_connection(SERVICE, &closed(Role::Server, Closer::Local, 6));
    assert_eq!(find(kept, 1.0, id), None);
}

#[test]
fn half_of_all_connections_must_end_alike() {
    let id = "connections-closed-after-n-turns";
    let mut kept = connections(1000, Role::Server, Closer::Local, 5);
    for _ in 0..1000 {
        kept.record(SERVICE, &handshake("x25519", "rsa_2048", [100, 700]));
        kept.record_connection(SERVICE, &closed(Role::Server, Closer::Remote, 3));
    }
    assert!(find(kept.clone(), 1.0, id).is_some());
    kept.record_connection(SERVICE, &closed(Role::Server, Closer::Remote, 3));
    assert_eq!(find(kept, 1.0, id), None);
}

#[test]
fn connections_that_may_be_without_tls_save_no_handshake() {
    let id = "connections-closed-after-n-turns";
    let of = |open: u64, others: u64| {
        let mut kept = connections(1000, Role::Server, Closer::Remote, 3);
        for _ in 0..1000 + open {
            kept.record_opening(SERVICE, &opening(Role::Server));
        }
        for _ in 0..1000 {
            kept.record_connection(SERVICE, &closed(Role::Server, Closer::Local, 5));
        }
        // Of the handshakes beyond these, some must be theirs, unless connections that are still open had them.
        for _ in 0..others {
            kept.record(SERVICE, &handshake("x25519", "rsa_2048", [100, 700]));
        }
        find(kept, 1.0, id)
    };
    assert_eq!(of(0, 0), None);
    assert!(of(0, 1000).is_some());
    assert_eq!(of(1000, 1000), None);
}

#[test]
fn keep_alive_off_at_its_thresholds_is_an_upper_bound() {
    check("keep-alive-off", 1.98, |n| {
        connections(n, Role::Server, Closer::Local, 1)
    });
    let kept = connections(100, Role::Server, Closer::Local, 1);
    let finding = find(kept.clone(), 1.0, "keep-alive-off").unwrap();
    assert!(matches!(finding.prediction, Prediction::AtMost(..)));
    let other = find(kept, 1.0, "connections-closed-after-n-turns");
    assert_eq!(other, None, "one finding for one fault");
}

#[test]
fn a_server_is_not_blamed_for_what_the_load_tool_asked() {
    let kept = || connections(100, Role::Server, Closer::Local, 1);
    let of = |client_closes, is_target| {
        let setting = Setting {
            client_closes,
            ..SETTING
        };
        let about = About { is_target, ..NGINX };
        let found = found_in(kept(), 1.0, Calibration::new(), (about, setting));
        found
            .into_iter()
            .find(|one| one.kind.label == "keep-alive-off")
            .unwrap()
    };
    let asked = Some("`ab` asks for the close");
    let finding = of(asked, true);
    assert_eq!(finding.severity, Severity::Info);
    assert_eq!(finding.title, "Connections carry one request each");
    let first = &finding.evidence.statements[0];
    assert_eq!(first, "The client requested this: `ab` asks for the close.");
    assert_ne!(of(None, true).severity, Severity::Info);
    // The load was for another service.
    assert_ne!(of(asked, false).severity, Severity::Info);
}

#[test]
fn turns_over_http2_are_not_called_requests() {
    let mut kept = connections(100, Role::Server, Closer::Local, 5);
    let mut facts = Facts::default();
    facts.offer = Some(Offer {
        protocols: vec!["h2", "http/1.1"],
        ..Offer::default()
    });
    let one = Handshake {
        hello: Some(Box::new(facts)),
        ..handshake("x25519", "rsa_2048", [100, 700])
    };
    kept.record(SERVICE, &one);
    let finding = find(kept, 0.2, "connections-closed-after-n-turns").unwrap();
    let title = "The server closes connections after exactly 5 turns (may carry several requests)";
    assert_eq!(finding.title, title);
}

#[test]
fn a_client_has_no_findings_unless_the_user_named_it() {
    let kept = || connections(100, Role::Client, Closer::Local, 1);
    for (named, listens, judged) in [
        (false, false, false),
        (true, false, true),
        (false, true, true),
    ] {
        let about = About {
            named,
            listens,
            ..NGINX
        };
        let found = found_in(kept(), 1.0, Calibration::new(), (about, SETTING));
        assert_eq!(!found.is_empty(), judged, "{about:?}");
    }
}

#[test]
fn upstream_keep_alive_off_at_its_thresholds() {
    for by in [Closer::Local, Closer::Remote] {
        check("upstream-keep-alive-off", 1.98, |n| {
            connections(n, Role::Client, by, 1)
        });
    }
    let kept = connections(1000, Role::Client, Closer::Local, 2);
    assert_eq!(find(kept, 1.0, "upstream-keep-alive-off"), None);
}

#[test]
fn time_wait_build_up_at_ten_thousand() {
    let of = |n| connections(n, Role::Server, Closer::Local, 5);
    assert_eq!(find(of(9_999), 1.0, "time-wait-build-up"), None);
    let finding = find(of(10_000), 1.0, "time-wait-build-up").unwrap();
    assert_eq!(finding.prediction, Prediction::Nothing);
}

#[test]
fn ephemeral_ports_at_half_and_at_four_fifths() {
    let of = |number| {
        let remote = Remote {
            endpoint: 7,
            local_ports: 1000,
        };
        ledger(number, |ledger| {
            let one = Opening {
                remote: Some(remote),
                ..opening(Role::Client)
            };
            ledger.record_opening(SERVICE, &one);
        })
    };
    assert_eq!(find(of(499), 1.0, "ephemeral-ports"), None);
    let severity = |number| find(of(number), 1.0, "ephemeral-ports").unwrap().severity;
    assert_eq!(severity(500), Severity::Medium);
    assert_eq!(severity(799), Severity::Medium);
    assert_eq!(severity(800), Severity::High);
}

#[test]
fn process_per_connection_at_its_thresholds() {
    let of = |opened: u64, forked: u64| {
        let mut kept = ledger(opened, |ledger| {
            ledger.record_opening(SERVICE, &opening(Role::Server));
        });
        for child in 0..forked {
            let fork = ProcessEvent::Fork {
                parent: 1,
                child: 100 + u32::try_from(child).unwrap(),
                comm: "server".into(),
            };
            kept.record_process(SERVICE, &fork);
        }
        kept
    };
    let id = "process-per-connection";
    assert_eq!(find(of(ENOUGH - 1, ENOUGH - 1), 1.0, id), None);
    assert_eq!(find(of(ENOUGH, 79), 1.0, id), None);
    assert!(find(of(ENOUGH, 80), 1.0, id).is_some());
}

#[test]
fn a_process_alone_makes_no_account() {
    let mut kept = Ledger::default();
    let fork = ProcessEvent::Fork {
        parent: 1,
        child: 2,
        comm: "sh".into(),
    };
    kept.record_process("cron.service", &fork);
    assert!(kept.service("cron.service").is_none());
}

#[test]
fn thresholds_are_those_that_are_given() {
    let mut kept = connections(10, Role::Server, Closer::Local, 5);
    kept.add_cpu(SERVICE, Duration::from_secs(1), Duration::ZERO);
    let thresholds = Thresholds {
        min_handshakes: 10,
        min_saving: 0.009,
    };
    let found = advise(
        &kept,
        &Default::default(),
        |_| None,
        Setting {
            elapsed: Duration::from_secs(1),
            ..SETTING
        },
        thresholds,
    );
    assert!(
        found
            .iter()
            .any(|one| one.kind.label == "connections-closed-after-n-turns")
    );
}
