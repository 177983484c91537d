//! Costs over exact counts, and when they are not told.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::*;
use crate::interval::of_share;
use crate::{Ledger, Sampling};
use tlsprof_common::{Carries, Connection, Source};
use tlsprof_evidence::hello::{Facts, Offer};
use tlsprof_evidence::{Handshake, sample};

const SERVICE: &str = "nginx.service";

fn sampled() -> Ledger {
    let mut ledger = Ledger::default();
    ledger.set_sampling(Sampling::Every(Duration::from_millis(10)));
    ledger
}

/// Two seconds, a fifth of it handshakes, three tenths encryption, and 500
/// connections of 5 turns and 10 kB.
fn profiled(cipher: &'static str) -> Ledger {
    let mut ledger = sampled();
    for (activity, mode, count) in [
        (Activity::Handshake, Mode::User, 30),
        (Activity::Handshake, Mode::System, 10),
        (Activity::Encryption, Mode::User, 60),
        (Activity::SocketIo, Mode::System, 40),
        (Activity::Application, Mode::User, 40),
        (Activity::TcpOpen, Mode::System, 20),
        (Activity::TcpClose, Mode::Softirq, 90),
    ] {
        ledger.add_samples(SERVICE, activity, mode, count);
    }
    let second = Duration::from_secs(1);
    ledger.add_cpu(SERVICE, second, second);
    for number in 0..500 {
        ledger.record(SERVICE, &sample::handshake());
        ledger.record_opening(SERVICE, &sample::opening(Role::Server));
        let connection = Connection {
            carries: Carries::Tls,
            cipher: if number % 100 == 0 {
                "other one"
            } else {
                cipher
            },
            application_received: 1_000,
            application_sent: 9_000,
            ..sample::connection()
        };
        ledger.record_connection(SERVICE, &connection);
    }
    ledger
}

fn costs(ledger: &Ledger) -> Vec<UnitCost> {
    ledger.service(SERVICE).unwrap().unit_costs()
}

fn units(ledger: &Ledger) -> Vec<Unit> {
    costs(ledger).iter().map(|cost| cost.unit).collect()
}

#[test]
fn costs_are_time_over_exact_counts() {
    let costs = costs(&profiled("TLS_AES_128_GCM_SHA256"));
    let [handshake, turn, megabyte] = costs.as_slice() else {
        unreachable!("{costs:?}")
    };
    assert_eq!((handshake.unit, handshake.count), (Unit::Handshake, 500.0));
    assert!((handshake.seconds - 0.4 / 500.0).abs() < 1e-12);
    assert_eq!((turn.unit, turn.count), (Unit::Turn, 2500.0));
    assert!((turn.seconds - 1.4 / 2500.0).abs() < 1e-12);
    assert_eq!((megabyte.unit, megabyte.count), (Unit::Megabyte, 5.0));
    assert!((megabyte.seconds - 0.6 / 5.0).abs() < 1e-12);
    assert_eq!(megabyte.cipher, Some("TLS_AES_128_GCM_SHA256"));
    // 40 of 200 samples, of two seconds, over 500 handshakes.
    let limits = of_share(0.2, 200.0).scaled(2.0 / 500.0);
    assert!((handshake.limits.low - limits.low).abs() < 1e-12);
    assert!((handshake.limits.high - limits.high).abs() < 1e-12);
    assert_eq!(handshake.samples, 40);
}

#[test]
fn no_cipher_stands_for_a_mixture_or_for_what_is_not_known() {
    let mut mixed = profiled("TLS_AES_128_GCM_SHA256");
    let connection = Connection {
        carries: Carries::Tls,
        cipher: "TLS_CHACHA20_POLY1305_SHA256",
        application_sent: 1_000_000,
        ..sample::connection()
    };
    mixed.record_connection(SERVICE, &connection);
    for ledger in [mixed, profiled("unknown"), profiled(OTHER)] {
        assert_eq!(costs(&ledger).last().unwrap().cipher, None);
    }
}

#[test]
fn turns_and_bytes_of_connections_that_were_not_seen_whole_cost_nothing_known() {
    let mut ledger = profiled("TLS_AES_128_GCM_SHA256");
    for _ in 0..40 {
        ledger.record_opening(SERVICE, &sample::opening(Role::Server));
    }
    assert_eq!(units(&ledger).len(), 3);
    let from_before = Connection {
        whole: None,
        ..sample::connection()
    };
    for _ in 0..40 {
        ledger.record_connection(SERVICE, &from_before);
    }
    assert_eq!(units(&ledger), [Unit::Handshake]);
    assert!(!ledger.service(SERVICE).unwrap().connections_are_whole());
}

#[test]
fn an_activity_without_samples_has_an_upper_limit() {
    let mut ledger = sampled();
    ledger.record(SERVICE, &sample::handshake());
    ledger.add_samples(SERVICE, Activity::Application, Mode::User, 100);
    ledger.add_cpu(SERVICE, Duration::from_secs(1), Duration::ZERO);
    let [handshake] = costs(&ledger)[..] else {
        unreachable!()
    };
    assert_eq!((handshake.seconds, handshake.limits.low), (0.0, 0.0));
    assert!((handshake.limits.high - of_share(0.0, 100.0).high).abs() < 1e-12);
}

#[test]
fn samples_of_offloaded_handshakes_are_divided_by_these_too() {
    let mut ledger = profiled("TLS_AES_128_GCM_SHA256");
    let offloaded = Handshake {
        source: Source::Socket,
        offloaded: true,
        steps: None,
        ..sample::handshake()
    };
    ledger.record(SERVICE, &offloaded);
    assert_eq!(costs(&ledger)[0].count, 501.0);
}

#[test]
fn what_a_proxy_asks_of_others_are_no_turns_of_its_own() {
    let mut ledger = profiled("TLS_AES_128_GCM_SHA256");
    let mut upstream = sample::connection();
    upstream.whole = upstream.whole.map(|whole| tlsprof_common::Whole {
        role: Role::Client,
        turns: Some(5000),
        ..whole
    });
    ledger.record_opening(SERVICE, &sample::opening(Role::Client));
    ledger.record_connection(SERVICE, &upstream);
    assert_eq!(costs(&ledger)[1].count, 2500.0);
}

#[test]
fn without_samples_nothing_has_a_cost() {
    let mut ledger = Ledger::default();
    ledger.record(SERVICE, &sample::handshake());
    ledger.add_cpu(SERVICE, Duration::from_secs(1), Duration::ZERO);
    assert_eq!(units(&ledger), []);
}

/// A handshake of a client that offers HTTP/2 in TLS 1.3.
fn offering_http2() -> Handshake {
    let mut facts = Facts::default();
    facts.offer = Some(Offer {
        protocols: vec!["h2", "http/1.1"],
        ..Offer::default()
    });
    Handshake {
        hello: Some(Box::new(facts)),
        ..sample::handshake()
    }
}

/// The end of its connection, on which the server received so many bytes in five turns.
fn multiplexed(received: u64) -> Connection {
    Connection {
        carries: Carries::Tls,
        may_be_http2: Some(true),
        application_received: received,
        ..sample::connection()
    }
}

#[test]
fn turns_are_requests_again_once_what_http2_may_hide_is_bounded() {
    let mut ledger = profiled("unknown");
    let known = |ledger: &Ledger| {
        let account = ledger.service(SERVICE).unwrap();
        account.turns_are_requests(Role::Server)
    };
    assert!(known(&ledger));
    ledger.record(SERVICE, &offering_http2());
    assert!(!known(&ledger), "what an open one carries is not known");
    // 2,505 turns, and 25 requests more at most.
    ledger.record_connection(SERVICE, &multiplexed(30 * 11));
    assert!(known(&ledger));
    ledger.record(SERVICE, &offering_http2());
    ledger.record_connection(SERVICE, &multiplexed(6 * 11));
    assert!(!known(&ledger));
    assert!(
        ledger
            .service(SERVICE)
            .unwrap()
            .turns_are_requests(Role::Client)
    );
}

#[test]
fn hellos_that_were_not_read_may_have_offered_http2() {
    for (carries, known) in [(Carries::Plain, true), (Carries::Tls, false)] {
        let mut ledger = Ledger::default();
        let connection = Connection {
            carries,
            may_be_http2: None,
            application_received: 6 * 11,
            ..sample::connection()
        };
        ledger.record_connection(SERVICE, &connection);
        let account = ledger.service(SERVICE).unwrap();
        assert_eq!(account.turns_are_requests(Role::Server), known);
    }
}

#[test]
fn a_connection_from_before_is_not_open_for_ever() {
    let mut ledger = profiled("unknown");
    ledger.record(SERVICE, &offering_http2());
    let from_before = Connection {
        whole: None,
        ..multiplexed(1_000)
    };
    ledger.record_connection(SERVICE, &from_before);
    let account = ledger.service(SERVICE).unwrap();
    assert!(account.turns_are_requests(Role::Server));
}
