//! What is known of TLS in a service, for the rules by which its samples are judged.

use tlsprof_common::Outcome;
use tlsprof_evidence::activity::Tls;
use tlsprof_ledger::{ConnectionAccount, ServiceAccount};

/// Parts of the names of cipher suites without a hash for their MAC (RFC 5116).
const AUTHENTICATED: [&str; 3] = ["_GCM", "_CCM", CHACHA20];
const CHACHA20: &str = "_CHACHA20_";

/// One in so many completed handshakes shows that a suite is in use. Fewer are not what data is mostly protected by:
/// a scanner tries each suite once.
const IN_USE: u64 = 100;

/// So many connections without TLS show that the service has none: one may be a check of
/// its health, beside TLS connections from before.
const TELLING: u64 = 20;

/// From its account, if there is one. Without hooks on socket calls, no TLS is not the
/// same as none.
pub(super) fn tls_of(account: Option<&ServiceAccount>, calls_seen: bool) -> Tls {
    let Some(account) = account else {
        return Tls::Unknown;
    };
    let handshakes = account.handshakes.iter();
    let mut completed = handshakes
        .filter(|(key, _)| key.outcome == Outcome::Completed)
        .map(|(key, sum)| (key.cipher, sum.count))
        .peekable();
    if completed.peek().is_some() {
        let count = |is: fn(&str) -> bool| -> u64 {
            let those = completed.clone().filter(|(cipher, _)| is(cipher));
            those.map(|(_, count)| count).sum()
        };
        let known = count(is_known);
        let in_use = |is| {
            let those = count(is);
            those > 0 && those.saturating_mul(IN_USE) >= known
        };
        return Tls::Seen {
            hashed_mac: in_use(has_hashed_mac),
            chacha20: in_use(|cipher| cipher.contains(CHACHA20)),
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

/// Not "unknown", nor "other".
fn is_known(cipher: &str) -> bool {
    cipher.starts_with("TLS_")
}

fn has_hashed_mac(cipher: &str) -> bool {
    is_known(cipher) && !AUTHENTICATED.iter().any(|part| cipher.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlsprof_evidence::Handshake;
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
    fn a_suite_that_hardly_anybody_uses_is_not_in_use() {
        let of = |cipher| Handshake {
            cipher,
            ..handshake()
        };
        let (gcm, cbc) = ("TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA");
        for (number, unknown, hashed_mac) in [(10_000, 0, false), (99, 0, true), (99, 10_000, true)]
        {
            let seen = tls(|ledger| {
                (0..number).for_each(|_| ledger.record("nginx", &of(gcm)));
                (0..unknown).for_each(|_| ledger.record("nginx", &of("unknown")));
                ledger.record("nginx", &of(cbc));
            });
            let expected = Tls::Seen {
                hashed_mac,
                chacha20: false,
            };
            assert_eq!(seen, expected, "1 of {number}");
        }
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
