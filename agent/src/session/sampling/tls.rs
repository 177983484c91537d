//! What is known of TLS in a service, for the rules by which its samples are judged.

use tlsprof_common::Outcome;
use tlsprof_evidence::activity::Tls;
use tlsprof_ledger::{ConnectionAccount, HandshakeKey, ServiceAccount};

/// Parts of the names of cipher suites without a hash for their MAC (RFC 5116).
const AUTHENTICATED: [&str; 3] = ["_GCM", "_CCM", CHACHA20];
const CHACHA20: &str = "_CHACHA20_";

/// So many connections without TLS show that the service has none: one may be a check of
/// its health, beside TLS connections from before.
const TELLING: u64 = 20;

/// From its account, if there is one. Without hooks on socket calls, no TLS is not the
/// same as none.
pub(super) fn tls_of(account: Option<&ServiceAccount>, calls_seen: bool) -> Tls {
    let Some(account) = account else {
        return Tls::Unknown;
    };
    let completed = |key: &&HandshakeKey| key.outcome == Outcome::Completed;
    let mut suites = account.handshakes.keys().filter(completed).peekable();
    if suites.peek().is_some() {
        let ciphers = suites.map(|key| key.cipher);
        return Tls::Seen {
            hashed_mac: ciphers.clone().any(has_hashed_mac),
            chacha20: ciphers.clone().any(|cipher| cipher.contains(CHACHA20)),
        };
    }
    let begun = !account.handshakes.is_empty() || account.connections_from_before > 0;
    let open = |role: &ConnectionAccount| role.opened > role.closed_count();
    let mut connections = account.connections.values();
    let ended: u64 = connections
        .clone()
        .map(ConnectionAccount::closed_count)
        .sum();
    if calls_seen && !begun && ended >= TELLING && !connections.any(open) {
        return Tls::Absent;
    }
    Tls::Unknown
}

fn has_hashed_mac(cipher: &str) -> bool {
    cipher.starts_with("TLS_") && !AUTHENTICATED.iter().any(|part| cipher.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlsprof_evidence::sample::{connection, handshake};
    use tlsprof_ledger::{Ledger, Limits};

    fn tls(fill: impl FnOnce(&mut Ledger)) -> Tls {
        let mut ledger = Ledger::new(Limits::default());
        fill(&mut ledger);
        tls_of(ledger.service("nginx"), true)
    }

    #[test]
    fn a_completed_handshake_shows_tls_and_its_suite() {
        let mut one = handshake();
        let seen = tls(|ledger| ledger.record("nginx", &one));
        let expected = |hashed_mac, chacha20| Tls::Seen {
            hashed_mac,
            chacha20,
        };
        assert_eq!(seen, expected(false, false));
        one.cipher = "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256";
        let seen = tls(|ledger| ledger.record("nginx", &one));
        assert_eq!(seen, expected(true, false));
        one.cipher = "TLS_CHACHA20_POLY1305_SHA256";
        let seen = tls(|ledger| {
            ledger.record("nginx", &handshake());
            ledger.record("nginx", &one);
        });
        assert_eq!(seen, expected(false, true));
        one.outcome = Outcome::Failed;
        assert_eq!(tls(|ledger| ledger.record("nginx", &one)), Tls::Unknown);
    }

    #[test]
    fn plain_connections_show_that_there_is_none() {
        let one = |ledger: &mut Ledger| ledger.record_connection("nginx", &connection());
        let plain = |ledger: &mut Ledger| (0..TELLING).for_each(|_| one(ledger));
        assert_eq!(tls(one), Tls::Unknown);
        assert_eq!(tls(plain), Tls::Absent);
        let mut ledger = Ledger::new(Limits::default());
        plain(&mut ledger);
        assert_eq!(tls_of(ledger.service("nginx"), false), Tls::Unknown);
        assert_eq!(tls_of(None, true), Tls::Unknown);
    }

    #[test]
    fn suites_without_a_hash_are_known_by_their_mode() {
        for suite in [
            "TLS_AES_128_CCM_SHA256",
            "TLS_CHACHA20_POLY1305_SHA256",
            "unknown",
        ] {
            assert!(!has_hashed_mac(suite), "{suite}");
        }
        for suite in ["TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_RSA_WITH_NULL_SHA256"] {
            assert!(has_hashed_mac(suite), "{suite}");
        }
    }
}
