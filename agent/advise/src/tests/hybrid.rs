//! Post-quantum key exchange: advised first where both sides have it, and never away.

use super::handshakes::{slow, with_x25519};
use super::{
    NGINX, SERVICE, SETTING, found_in, handshake, hello, is_unknown, kind, ledger, likely_seconds,
};
use crate::finding::Target;
use crate::{About, Calibration, Finding, Hybrid, Remedy, Server, Setting};
use tlsprof_common::Role;
use tlsprof_evidence::Handshake;
use tlsprof_ledger::Ledger;

const X25519: u16 = 29;
const P384: u16 = 24;
const HYBRID: u16 = 4588;
const HYBRID_384: u16 = 4589;
const RSA_PSS: u16 = 0x0804;

/// nginx with an OpenSSL of that version.
fn nginx_with(minor: u32) -> (About<'static>, Setting) {
    let openssl = Some((3, minor));
    (About { openssl, ..NGINX }, SETTING)
}

fn slow_with(minor: u32, ledger: Ledger) -> Option<Finding> {
    let found = found_in(ledger, 0.4, Calibration::new(), nginx_with(minor));
    found
        .into_iter()
        .find(|one| one.kind.label == "slow-key-exchange")
}

#[test]
fn a_hybrid_group_comes_first_where_both_sides_have_it() {
    let kept = || {
        let mut kept = slow(100, &[HYBRID, P384, X25519]);
        for _ in 0..20 {
            kept.record(SERVICE, &handshake("secp256r1", "rsa_2048", [200, 900]));
        }
        kept
    };
    let older = slow_with(0, kept()).unwrap();
    assert!(
        older.title.contains("clients offer X25519,"),
        "{}",
        older.title
    );
    assert!(older.remedy.directive.contains("ssl_ecdh_curve X25519:"));
    assert!((likely_seconds(&older) - 0.1).abs() < 1e-9);
    let newer = slow_with(5, kept()).unwrap();
    assert!(
        newer.title.contains("clients offer X25519MLKEM768,"),
        "{}",
        newer.title
    );
    assert!(
        newer
            .remedy
            .directive
            .contains("ssl_ecdh_curve X25519MLKEM768:")
    );
    // What the hybrid group costs here, nobody knows.
    assert!(is_unknown(&newer));
}

#[test]
fn no_remedy_takes_away_a_group_that_was_negotiated() {
    let mut kept = slow(100, &[P384, X25519]);
    kept.record(
        SERVICE,
        &handshake("X25519MLKEM768", "rsa_2048", [180, 900]),
    );
    // Whatever its version says: a provider of others has it.
    let finding = slow_with(0, kept).unwrap();
    assert!(finding.remedy.directive.contains("X25519MLKEM768"));
}

#[test]
fn a_slow_hybrid_group_gives_way_only_to_a_faster_one() {
    let slow_hybrid = |groups: &[u16]| {
        let one = Handshake {
            hello: hello(groups, &[RSA_PSS]),
            ..handshake("SecP384r1MLKEM1024", "rsa_2048", [1300, 900])
        };
        let mut kept = ledger(100, |ledger| ledger.record(SERVICE, &one));
        for _ in 0..20 {
            kept.record(
                SERVICE,
                &handshake("X25519MLKEM768", "rsa_2048", [180, 900]),
            );
        }
        with_x25519(&mut kept);
        kept
    };
    let finding = slow_with(5, slow_hybrid(&[HYBRID_384, HYBRID, X25519])).unwrap();
    assert!(
        finding.title.contains("clients offer X25519MLKEM768,"),
        "{}",
        finding.title
    );
    assert!((likely_seconds(&finding) - 0.112).abs() < 1e-9);
    assert_eq!(slow_with(5, slow_hybrid(&[HYBRID_384, X25519])), None);
}

#[test]
fn post_quantum_key_exchange_is_never_advised_away() {
    for server in Server::ALL {
        for hybrid in Hybrid::ALL {
            for label in ["slow-key-exchange", "post-quantum-cost"] {
                let target = Target {
                    role: Role::Server,
                    server,
                    hybrid,
                };
                let Remedy { directive, .. } = Remedy::of(kind(label), target);
                let lists = directive.to_lowercase().contains("x25519") && server != Server::Domino;
                let keeps = directive.to_lowercase().contains("x25519mlkem768");
                assert!(
                    !lists || keeps || hybrid == Hybrid::Lacks,
                    "{server:?} {hybrid:?}"
                );
            }
        }
    }
}
