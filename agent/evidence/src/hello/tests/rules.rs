//! Rules that captured connections do not cover, and what is done with facts.

use crate::hello::fixture::{fed, read};
use crate::hello::{
    AlertLevel, Attempt, CipherSuite, Direction, Facts, Group, KeyExchange, Late, Offer,
    SignatureScheme, Version,
};
use crate::{Handshake, sample};
use tlsprof_common::{Resumption, Role};

fn facts(fixture: &str) -> Facts {
    fed(read(fixture).whole()).facts().unwrap().clone()
}

fn unknown(role: Role) -> Handshake {
    Handshake {
        role,
        resumption: Resumption::Unknown,
        version: "unknown",
        cipher: "unknown",
        group: "unknown",
        signature: "unknown",
        steps: None,
        ..sample::handshake()
    }
}

#[test]
fn the_wire_fills_in_what_is_unknown() {
    let mut handshake = unknown(Role::Server);
    facts("openssl30-tls12-full").apply_to(&mut handshake);
    assert_eq!(handshake.version, "TLS1.2");
    assert_eq!(handshake.cipher, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384");
    assert_eq!(
        (handshake.group, handshake.signature),
        ("x25519", "rsa_2048")
    );
    assert_eq!(handshake.resumption, Resumption::None);
}

#[test]
fn what_a_certificate_is_chosen_by_is_told_apart_and_nothing_else() {
    let request = |from: &[u8], to: &[u8]| {
        let mut fixture = read("openssl30-tls13-full");
        let hello = &mut fixture.chunks[0].1;
        let at = hello.windows(from.len()).position(|bytes| bytes == from);
        hello.splice(at.unwrap()..at.unwrap() + from.len(), to.iter().copied());
        let exchange = fed(fixture.whole());
        exchange.facts().unwrap().certificate_request().unwrap()
    };
    let hello = read("openssl30-tls13-full").chunks[0].1.clone();
    let random = &hello[11..43];
    let same = request(random, random);
    assert_eq!(request(random, &[7; 32]), same);
    for (from, to) in [
        (&b"www.example.org"[..], &b"www.example.com"[..]),
        // Ed25519 becomes Ed448, of which there are two then.
        (&[8, 7, 8, 8], &[8, 8, 8, 8]),
        (b"http/1.1", b"http/1.0"),
        (&[0x13, 0x02, 0x13, 0x03], &[0x13, 0x02, 0x13, 0x01]),
    ] {
        assert_ne!(request(from, to), same, "{from:?}");
    }
}

#[test]
fn certificates_are_counted_where_they_are_in_clear() {
    let chain = facts("openssl30-tls12-full").server_chain.unwrap();
    assert_eq!(chain.certificates, Some(1));
    assert!((500..1500).contains(&chain.length), "{chain:?}");
    for without in ["openssl30-tls13-full", "openssl30-tls12-ticket"] {
        assert_eq!(facts(without).server_chain, None, "{without}");
    }
}

#[test]
fn a_signature_that_is_encrypted_is_left_to_the_library() {
    let mut handshake = unknown(Role::Server);
    handshake.signature = "ecdsa_p256";
    facts("openssl30-tls13-full").apply_to(&mut handshake);
    assert_eq!(handshake.signature, "ecdsa_p256");
}

#[test]
fn the_wire_wins() {
    let mut handshake = unknown(Role::Server);
    handshake.group = "secp384r1";
    let full = facts("openssl30-tls12-full");
    assert!(full.contradicts(&handshake));
    full.apply_to(&mut handshake);
    assert_eq!(handshake.group, "x25519");
    let mut handshake = unknown(Role::Server);
    handshake.resumption = Resumption::Psk;
    let full = facts("openssl30-tls13-full");
    assert!(full.contradicts(&handshake));
    full.apply_to(&mut handshake);
    assert_eq!(handshake.resumption, Resumption::None);
}

#[test]
fn naming_the_means_of_resumption_is_no_disagreement() {
    for (fixture, means) in [
        ("openssl30-tls12-ticket", Resumption::Ticket),
        ("openssl30-tls12-session-id", Resumption::SessionId),
    ] {
        let mut handshake = unknown(Role::Server);
        handshake.resumption = Resumption::Abbreviated;
        handshake.group = "none";
        let facts = facts(fixture);
        assert!(!facts.contradicts(&handshake), "{fixture}");
        facts.apply_to(&mut handshake);
        assert_eq!(handshake.resumption, means);
    }
}

#[test]
fn a_hello_alone_overrules_nothing() {
    let hello = fed(read("openssl30-tls13-full").whole().take(1));
    let mut handshake = unknown(Role::Client);
    handshake.resumption = Resumption::Psk;
    handshake.group = "x448";
    let before = handshake.clone();
    let facts = hello.facts().unwrap();
    assert!(!facts.contradicts(&handshake));
    facts.apply_to(&mut handshake);
    assert_eq!(handshake, before);
}

#[test]
fn an_own_signature_of_a_client_is_its_certificate_verify() {
    let facts = facts("openssl30-tls12-client-certificate");
    assert_eq!(facts.signature(Role::Client), "ecdsa_p256");
    assert_eq!(facts.signature(Role::Server), "rsa_2048");
}

#[test]
fn a_ticket_without_session_id_is_accepted_by_changing_cipher() {
    let mut facts = facts("openssl30-tls12-ticket");
    let offer = facts.offer.get_or_insert(Offer::default());
    assert!(offer.ticket);
    offer.session_id = false;
    if let Some(choice) = &mut facts.choice {
        choice.session_id_echoed = false;
    }
    assert_eq!(facts.resumption(), Resumption::Ticket);
    assert_eq!(facts.attempt(), Attempt::Accepted);
}

/// One connection cannot tell a made-up session id from a session that the
/// server has dropped; the ids that the server gave out can.
#[test]
fn a_refused_session_is_known_by_its_id() {
    for fixture in [
        "openssl30-tls12-server-of-tls13-client",
        "openssl30-tls12-session-id-refused",
        "go126-tls12-full",
    ] {
        let facts = facts(fixture);
        assert_eq!(facts.resumption(), Resumption::None, "{fixture}");
        // A client that offers TLS 1.3 makes up an id for compatibility.
        let offers_13 = facts.offer.as_ref().is_some_and(Offer::has_13);
        let unclear = if offers_13 {
            Attempt::NotOffered
        } else {
            Attempt::Unknown
        };
        assert_eq!(facts.attempt(), unclear, "{fixture}");
        assert_eq!(facts.refused_session().map(<[u8]>::len), Some(32));
    }
    let issuing = facts("openssl30-tls12-session-id-refused");
    assert_eq!(issuing.issued_session().map(<[u8]>::len), Some(32));
    let accepted = facts("openssl30-tls12-session-id");
    assert_eq!(accepted.refused_session(), None);
    assert_eq!(accepted.issued_session(), None);
}

#[test]
fn dhe_groups_are_told_by_the_prime() {
    assert_eq!(
        facts("gnutls37-tls12-dhe").key_exchange(),
        KeyExchange::Group(Group(256))
    );
    assert_eq!(
        facts("openssl30-tls12-dhe").key_exchange(),
        KeyExchange::Dhe(2048)
    );
}

#[test]
fn codes_without_name_are_other() {
    assert_eq!(Group(0x1234).name(), "other");
    assert_eq!(Version(0x0305).name(), "other");
    assert_eq!(SignatureScheme(0).name(), "other");
    assert_eq!(Group(0x1234).named(), Group::OTHER);
    assert_eq!(Group::X25519.named(), Group::X25519);
    assert_eq!(Group::OTHER.name(), "other");
    assert_eq!(Version::OTHER.name(), "other");
}

#[test]
fn ecdhe_with_ecdsa_is_what_the_name_of_a_suite_says() {
    let all = (0..=u16::MAX).map(CipherSuite);
    let named = |suite: &CipherSuite| suite.name().starts_with("TLS_ECDHE_ECDSA_WITH_");
    let (named, others): (Vec<_>, Vec<_>) = all.partition(named);
    assert!(named.len() > 20);
    assert!(named.iter().all(|suite| suite.is_ecdhe_ecdsa()));
    let wrong: Vec<_> = others.iter().filter(|it| it.is_ecdhe_ecdsa()).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn an_alert_in_clear_after_the_hellos_is_heard() {
    let unknown_ca = b"\x14\x03\x03\x00\x01\x01\x15\x03\x03\x00\x02\x02\x30";
    for pieces in [1, 5, 6, 11, 13] {
        let mut facts = facts("openssl30-tls13-full");
        let before = facts.alerts.len();
        let mut late = Late::default();
        for piece in unknown_ca.chunks(pieces) {
            late.hear(&mut facts, Direction::FromClient, piece);
        }
        assert_eq!(facts.alerts.len(), before + 1);
        let (direction, level, alert) = facts.alerts[before];
        let expected = (Direction::FromClient, AlertLevel::Fatal);
        assert_eq!((direction, level), expected);
        assert_eq!(alert.name(), "unknown_ca");
    }
}

#[test]
fn late_alerts_are_bounded_and_end_with_encrypted_data() {
    let mut facts = facts("openssl30-tls13-full");
    let (mut late, alert) = (Late::default(), b"\x15\x03\x03\x00\x02\x01\x5a");
    for _ in 0..1000 {
        late.hear(&mut facts, Direction::FromServer, alert);
    }
    assert!(facts.alerts.len() < 10);
    let known = facts.alerts.len();
    let data = b"\x17\x03\x03\x00\x02\x01\x02\x15\x03\x03\x00\x02\x02\x30";
    late.hear(&mut facts, Direction::FromServer, data);
    assert_eq!(facts.alerts.len(), known);
}
