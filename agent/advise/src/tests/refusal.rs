//! Why sessions are refused.

use std::time::Duration;

use super::{SERVICE, find, handshake, ledger, of_fixture};
use crate::Finding;
use tlsprof_common::Resumption;
use tlsprof_evidence::Handshake;
use tlsprof_evidence::hello::{Facts, Giver, Origin};
use tlsprof_ledger::Ledger;

const MILLI: u64 = 1;
const SECOND: u64 = 1000;

/// Sessions of one kind that were brought to the service.
#[derive(Clone, Copy)]
struct Brought {
    accepted: bool,
    giver: Option<Giver>,
    /// Milliseconds.
    age: Option<u64>,
    number: u64,
}

fn refused(number: u64, giver: Giver, age: u64) -> Brought {
    Brought {
        accepted: false,
        giver: Some(giver),
        age: Some(age),
        number,
    }
}

fn accepted(number: u64, giver: Giver, age: u64) -> Brought {
    Brought {
        accepted: true,
        ..refused(number, giver, age)
    }
}

/// By session id.
fn facts(brought: Brought) -> Option<Box<Facts>> {
    let name = match brought.accepted {
        true => "openssl30-tls12-session-id",
        false => "openssl30-tls12-session-id-refused",
    };
    let mut facts = of_fixture(name)?;
    facts.forget_sessions(!brought.accepted);
    facts.origin = brought.giver.map(|giver| Origin {
        giver,
        process: 7,
        age: brought.age.map(Duration::from_millis),
    });
    Some(facts)
}

fn of(brought: &[Brought]) -> Ledger {
    let mut kept = ledger(0, |_| ());
    for one in brought {
        let mut booked = Handshake {
            hello: facts(*one),
            ..handshake("x25519", "rsa_2048", [100, 900])
        };
        if one.accepted {
            booked.resumption = Resumption::SessionId;
        }
        for _ in 0..one.number {
            kept.record(SERVICE, &booked);
        }
    }
    kept
}

fn finding(brought: &[Brought]) -> Finding {
    find(of(brought), 0.1, "resumption-refused").unwrap()
}

/// The title ends so, and the directive holds that.
fn check(brought: &[Brought], title: &str, directive: &str) {
    let finding = finding(brought);
    assert!(finding.title.ends_with(title), "{}", finding.title);
    let given = finding.remedy.directive;
    assert!(given.contains(directive), "{given}");
}

#[test]
fn a_server_that_refuses_its_own_young_sessions_keeps_none() {
    let title = "refuses them: it keeps none";
    let cache = "ssl_session_cache shared";
    check(&[refused(100, Giver::Same, MILLI)], title, cache);
    // As many workers do, to which a client comes by chance.
    let by_chance = [
        refused(75, Giver::Sibling, MILLI),
        refused(25, Giver::Same, MILLI),
    ];
    check(&by_chance, title, cache);
}

#[test]
fn processes_that_take_up_their_own_sessions_alone_do_not_share_them() {
    let title = "refuses them: its processes do not share them";
    let builtin = |siblings| {
        [
            accepted(50, Giver::Same, MILLI),
            accepted(siblings, Giver::Sibling, MILLI),
            refused(100, Giver::Sibling, MILLI),
        ]
    };
    check(&builtin(0), title, "ssl_session_cache shared");
    check(&builtin(11), title, "ssl_session_cache shared");
    // 12 of 112 are more than a tenth.
    let shared = finding(&builtin(12));
    assert!(!shared.title.ends_with(title), "{}", shared.title);
}

#[test]
fn sessions_of_ended_processes_and_of_other_services_are_told() {
    let cases = [
        (Giver::Ended, "they come from processes that have ended"),
        (Giver::Stranger, "they come from another service"),
    ];
    for (giver, title) in cases {
        let half = [
            refused(50, giver, MILLI),
            refused(50, Giver::Same, MILLI),
            accepted(100, Giver::Same, MILLI),
        ];
        check(&half, title, "ssl_session_ticket_key");
        let less = [refused(49, giver, MILLI), refused(51, Giver::Same, MILLI)];
        assert!(!finding(&less).title.ends_with(title));
    }
}

#[test]
fn sessions_that_are_refused_by_their_age_meet_a_time_out() {
    let title = "refuses them: they have expired";
    let aged = |young, old| {
        [
            accepted(10, Giver::Same, young),
            refused(100, Giver::Sibling, old),
            refused(10, Giver::Same, old),
        ]
    };
    check(&aged(SECOND, 2 * SECOND), title, "ssl_session_timeout");
    let text = finding(&aged(SECOND, 2 * SECOND)).evidence.statements;
    assert!(
        text.join(" ")
            .contains("up to an age of 1.00 s were accepted"),
        "{text:?}"
    );
    // Some of any age: they were dropped.
    let dropped = "evicts them early";
    check(
        &aged(2 * SECOND, SECOND),
        dropped,
        "ssl_session_cache shared",
    );
    // None was accepted: no time-out is shorter than a second.
    let none = |age| [refused(100, Giver::Same, age)];
    let either = "refuses them: it keeps none, or not long enough";
    check(&none(SECOND), either, "ssl_session_timeout");
    let off = "refuses them: it keeps none";
    check(&none(SECOND - 1), off, "ssl_session_tickets on");
}

#[test]
fn what_was_not_seen_is_not_explained() {
    let unknown = |number| Brought {
        giver: None,
        age: None,
        ..refused(number, Giver::Same, 0)
    };
    let finding = finding(&[unknown(51), refused(49, Giver::Same, MILLI)]);
    assert!(finding.title.ends_with("refuses them"), "{}", finding.title);
    let text = finding.evidence.statements.join(" ");
    assert!(text.contains("unknown: 51 refused"), "{text}");
    assert!(text.contains("does not show the cause"), "{text}");
}

#[test]
fn tickets_are_not_dropped_but_expire() {
    let ticket = |name| {
        let mut facts = of_fixture(name)?;
        facts.origin = Some(Origin {
            giver: Giver::Same,
            process: 7,
            age: None,
        });
        Some(facts)
    };
    let mut kept = ledger(100, |ledger| {
        let one = Handshake {
            hello: ticket("openssl30-tls13-psk-refused"),
            ..handshake("x25519", "rsa_2048", [100, 900])
        };
        ledger.record(SERVICE, &one);
    });
    let one = Handshake {
        hello: ticket("openssl30-tls13-psk-resumed"),
        resumption: Resumption::Psk,
        ..handshake("x25519", "none", [100, 0])
    };
    kept.record(SERVICE, &one);
    let finding = find(kept, 0.1, "resumption-refused").unwrap();
    assert!(
        finding.title.ends_with("they have expired"),
        "{}",
        finding.title
    );
}
