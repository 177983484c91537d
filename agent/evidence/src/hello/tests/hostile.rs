//! Input that no honest peer sends.

use proptest::prelude::*;

use crate::hello::fixture::{all, bytes, fed, read, summary};
use crate::hello::{Direction, Exchange, Opening, State, TLS_LIMIT, Upgrade};

const C: Direction = Direction::FromClient;
const S: Direction = Direction::FromServer;

#[test]
fn a_message_that_claims_to_be_huge_is_given_up_at_its_header() {
    let exchange = fed([(C, bytes("16030140000100ffff").as_slice())]);
    assert_eq!(summary(&exchange), "gave_up:too_long");
}

#[test]
fn a_hello_of_64_kib_is_given_up() {
    let mut exchange = Exchange::new();
    exchange.received(C, &bytes("16030140000100fff0"));
    assert_eq!(summary(&exchange), "gave_up:too_long");
}

#[test]
fn an_endless_certificate_chain_is_given_up_at_the_limit() {
    let mut exchange = fed(read("openssl30-tls12-full").whole().take(1));
    let hello = &read("openssl30-tls12-full").chunks[1].1[..100];
    exchange.received(S, &hello[..5 + usize::from(hello[4])]);
    exchange.received(S, &bytes("16030340000bffffff"));
    let mut fed = 0;
    while exchange.state() == State::NeedMore {
        assert!(fed <= TLS_LIMIT, "no end after {fed}");
        // Bodies of records, and their headers: all the same to a chain.
        let body = [0; 1000];
        exchange.received(S, &body);
        fed += body.len();
    }
    assert!(matches!(exchange.state(), State::GaveUp(_)));
    assert_eq!(exchange.facts().unwrap().version(), "TLS1.2");
}

#[test]
fn empty_records_and_warnings_without_end_are_bounded() {
    let mut exchange = fed(read("openssl30-tls12-full").whole().take(1));
    for _ in 0..10_000 {
        exchange.received(S, &bytes("15030300020100"));
        exchange.received(C, &bytes("1603030000"));
    }
    assert!(matches!(exchange.state(), State::GaveUp(_)));
    assert!(exchange.facts().unwrap().alerts.len() <= 4);
}

#[test]
fn what_follows_the_end_in_the_same_chunk_changes_nothing() {
    let fixture = read("openssl30-tls13-full");
    let mut server = fixture.chunks[1].1[..127].to_vec();
    server.extend([0xff; 100]);
    let mut exchange = fed(fixture.whole().take(1));
    exchange.received(S, &server);
    assert_eq!(summary(&exchange), fixture.expected);
}

#[test]
fn warnings_end_it_at_the_limit() {
    let mut exchange = fed(read("openssl30-tls12-full").whole().take(1));
    let warning = bytes("15030300020100");
    for _ in 0..TLS_LIMIT / warning.len() {
        assert_eq!(exchange.received(S, &warning), State::NeedMore);
    }
    let end = exchange.received(S, &warning);
    assert_eq!(end, State::GaveUp(crate::hello::GaveUp::TooLong));
}

#[test]
fn lost_bytes_end_it_and_keep_what_is_known() {
    let fixture = read("openssl30-tls12-full");
    let mut exchange = fed(fixture.whole().take(1));
    exchange.missed(S);
    exchange.received(S, &fixture.chunks[1].1);
    assert!(summary(&exchange).starts_with("gave_up:gap unknown"));
}

#[test]
fn a_connection_joined_late_is_not_taken_for_another_protocol() {
    let data = bytes("170303001001020304050607080910");
    assert_eq!(summary(&fed([(C, data.as_slice())])), "gave_up:underway");
    let finished = bytes("160303002800000000000000000102030405");
    assert_eq!(
        summary(&fed([(C, finished.as_slice())])),
        "gave_up:underway"
    );
}

#[test]
fn other_protocols_are_recognised_within_five_bytes() {
    let state = |way, first: &[u8]| fed([(way, first)]).state();
    for first in [
        &b"GET /"[..],
        b"SSH-2",
        b"\x16\x03\x09\x00\x01",
        b"\x16\x03\x01\xff\xff",
    ] {
        assert_eq!(state(C, first), State::NotTls, "{}", first.escape_ascii());
    }
    for first in [&b"HTTP/"[..], b"-ERR "] {
        assert_eq!(state(S, first), State::NotTls, "{}", first.escape_ascii());
    }
}

#[test]
fn what_came_before_is_among_the_facts() {
    let opening = Opening {
        proxy_protocol: true,
        upgrade: Some(Upgrade::Smtp),
    };
    let mut exchange = Exchange::after(opening);
    for (direction, bytes) in read("starttls-smtp-tls13").whole() {
        exchange.received(direction, bytes);
    }
    assert_eq!(exchange.state(), State::Complete);
    assert_eq!(exchange.facts().unwrap().opening, opening);
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(C), Just(S)]
}

proptest! {
    #[test]
    fn random_bytes_are_harmless(
        chunks in prop::collection::vec(
            (direction(), prop::collection::vec(any::<u8>(), 0..300)), 0..20),
    ) {
        let exchange = fed(chunks.iter().map(|(way, bytes)| (*way, bytes.as_slice())));
        summary(&exchange);
    }

    #[test]
    fn damaged_hellos_are_harmless(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut chunks = which.get(all()).chunks.clone();
        for (place, byte) in damage {
            let total = chunks.iter().map(|(_, bytes)| bytes.len()).sum();
            let mut at = place.index(total);
            for (_, bytes) in &mut chunks {
                match bytes.get_mut(at) {
                    Some(damaged) => { *damaged = byte; break; }
                    None => at -= bytes.len(),
                }
            }
        }
        let exchange = fed(chunks.iter().map(|(way, bytes)| (*way, bytes.as_slice())));
        summary(&exchange);
    }
}
