use proptest::prelude::*;

use crate::hello::fixture::{all, fed, read, summary};
use crate::hello::{Direction, Exchange};

#[test]
fn every_fixture_says_what_its_client_said() {
    let wrong: Vec<String> = all()
        .iter()
        .filter(|fixture| summary(&fed(fixture.whole())) != fixture.expected)
        .map(|fixture| format!("{}\n  {}", fixture.name, summary(&fed(fixture.whole()))))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pieces_of_any_size_give_the_same_facts() {
    for fixture in all() {
        let whole = fed(fixture.whole());
        for size in [1, 2, 3, 5, 9, 64, 1448] {
            let pieces = fed(fixture.pieces(size));
            assert_eq!(pieces.facts(), whole.facts(), "{} by {size}", fixture.name);
            assert_eq!(pieces.state(), whole.state(), "{} by {size}", fixture.name);
        }
    }
}

#[test]
fn a_server_that_speaks_first_may_be_heard_first() {
    let fixture = read("openssl30-tls12-full");
    let mut chunks: Vec<_> = fixture.whole().collect();
    chunks.sort_by_key(|(direction, _)| *direction == Direction::FromClient);
    let exchange = fed(chunks);
    assert_eq!(summary(&exchange), fixture.expected);
}

#[test]
fn an_offer_lists_what_the_client_can_do() {
    let exchange = fed(read("openssl35-tls13-full").whole());
    let offer = exchange.facts().unwrap().offer.clone().unwrap();
    let names = |groups: &[crate::hello::Group]| -> Vec<&str> {
        groups.iter().map(|group| group.name()).collect()
    };
    assert_eq!(names(&offer.key_shares), ["X25519MLKEM768", "x25519"]);
    assert_eq!(
        names(&offer.groups)[..4],
        ["X25519MLKEM768", "x25519", "secp256r1", "x448"]
    );
    assert!(offer.post_quantum() && offer.has_13() && offer.server_name);
    assert!(offer.session_id && !offer.ticket && offer.ticket_support && !offer.psk);
    assert_eq!(offer.ciphers[0].name(), "TLS_AES_256_GCM_SHA384");
    assert!(offer.ciphers.iter().all(|suite| suite.name() != "other"));
    assert!(
        offer
            .signatures
            .iter()
            .any(|scheme| scheme.name() == "mldsa65")
    );
}

#[test]
fn application_protocols_are_named() {
    let exchange = fed(read("go126-tls12-full").whole());
    let facts = exchange.facts().unwrap();
    assert_eq!(facts.offer.as_ref().unwrap().protocols, ["h2", "http/1.1"]);
    assert_eq!(facts.choice.as_ref().unwrap().protocol, Some("h2"));
}

proptest! {
    #[test]
    fn cuts_anywhere_give_the_same_facts(
        which in any::<prop::sample::Index>(),
        cuts in prop::collection::vec(1_usize..600, 1..40),
    ) {
        let fixture = which.get(all());
        let mut exchange = Exchange::new();
        let mut sizes = cuts.iter().cycle();
        for (direction, mut bytes) in fixture.whole() {
            while !bytes.is_empty() {
                let (piece, rest) = bytes.split_at((*sizes.next().unwrap()).min(bytes.len()));
                exchange.received(direction, piece);
                bytes = rest;
            }
        }
        prop_assert_eq!(&summary(&exchange), &fixture.expected);
    }
}
