//! What clients would have taken instead of what the server chose, and what those
//! brought who were turned away.

use std::collections::{BTreeMap, BTreeSet};

use tlsprof_common::{Outcome, Resumption, Role};
use tlsprof_evidence::Handshake;
use tlsprof_evidence::hello::{Direction, Facts, Group, KeyExchange, Offer};

use super::since::sums;

/// How often each name came.
pub type Counts = BTreeMap<&'static str, u64>;

/// Names that are kept of what the clients of one alert offered, of each kind; a
/// client can send all that the registries have.
const NAMES: usize = 40;

/// Stands for a signature in [`Chosen`] where the server decrypted with its RSA
/// key instead of signing.
pub const RSA_TRANSPORT: &str = "rsa_transport";

/// What was negotiated, as far as it has a cheaper alternative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chosen {
    /// Key exchange group, `none` or `unknown`.
    pub group: &'static str,
    /// The server's signature, [`RSA_TRANSPORT`], `none` or `unknown`.
    pub signature: &'static str,
    /// No session was resumed.
    pub(crate) full: bool,
}

/// Completed handshakes whose ClientHello was read, by what else the client would
/// have taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alternatives {
    /// How many.
    pub hellos: u64,
    /// Those that offered X25519.
    pub x25519: u64,
    /// Those that offered X25519MLKEM768, nearly all of which offer X25519 too.
    pub hybrid: u64,
    /// Those that offered P-256 and not X25519.
    pub secp256r1_only: u64,
    /// Those that accept a certificate with an ECDSA key on P-256.
    pub ecdsa: u64,
}

sums!(Alternatives: hellos, x25519, hybrid, secp256r1_only, ecdsa);

impl Alternatives {
    fn record(&mut self, facts: &Facts, offer: &Offer) {
        let x25519 = offer.groups.contains(&Group::X25519);
        let secp256r1 = offer.groups.contains(&Group::SECP256R1);
        let is_13 = facts.choice.as_ref().is_some_and(|it| it.version.is_13());
        self.hellos += 1;
        self.x25519 += u64::from(x25519);
        self.hybrid += u64::from(offer.groups.contains(&Group::X25519MLKEM768));
        self.secp256r1_only += u64::from(!x25519 && secp256r1);
        self.ecdsa += u64::from(offer.accepts_ecdsa_p256(is_13));
    }

    /// The two together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            hellos: self.hellos + other.hellos,
            x25519: self.x25519 + other.x25519,
            hybrid: self.hybrid + other.hybrid,
            secp256r1_only: self.secp256r1_only + other.secp256r1_only,
            ecdsa: self.ecdsa + other.ecdsa,
        }
    }
}

/// Completed handshakes whose ClientHello was read, by whether the client would have
/// taken AES-GCM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CipherOffers {
    /// How many.
    pub hellos: u64,
    /// Those that offered AES-GCM too, for the same version of TLS, and did not ask for `ChaCha20` by putting it first.
    pub aes_gcm: u64,
}

/// What the clients of handshakes offered that one alert in clear ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnedAway {
    /// Handshakes whose ClientHello was read.
    pub hellos: u64,
    /// By the highest version that they offered.
    pub newest_versions: Counts,
    /// By each group that they offered.
    pub groups: Counts,
    /// By each cipher suite that they offered.
    pub ciphers: Counts,
}

/// What came of hellos, by service and role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consequences {
    /// Completed handshakes in the server role by what was chosen.
    pub chosen: BTreeMap<Chosen, Alternatives>,
    /// Completed handshakes in the server role by the suite that was chosen, unless that
    /// is one with AES-GCM.
    pub ciphers: BTreeMap<&'static str, CipherOffers>,
    /// Handshakes that a fatal alert in clear ended: true for alerts that the
    /// service sent, and what they say.
    pub turned_away: BTreeMap<(bool, &'static str), TurnedAway>,
    /// Completed handshakes up to TLS 1.2 in which the client signed with a
    /// certificate of its own; TLS 1.3 encrypts that.
    pub client_certificates: u64,
}

sums!(CipherOffers: hellos, aes_gcm);
sums!(TurnedAway: hellos, newest_versions, groups, ciphers);
sums!(Consequences: chosen, ciphers, turned_away, client_certificates);

impl Consequences {
    pub(super) fn record(&mut self, handshake: &Handshake, facts: &Facts) {
        if handshake.outcome == Outcome::Completed {
            self.client_certificates += u64::from(facts.client_signature.is_some());
        } else {
            self.record_alert(handshake.role, facts);
        }
        let completed = handshake.outcome == Outcome::Completed;
        let (Some(offer), true, Role::Server) = (&facts.offer, completed, handshake.role) else {
            return;
        };
        let signature = match facts.key_exchange() {
            KeyExchange::RsaTransport => RSA_TRANSPORT,
            _ => handshake.signature,
        };
        let chosen = Chosen {
            group: handshake.group,
            signature,
            full: handshake.resumption == Resumption::None,
        };
        self.chosen.entry(chosen).or_default().record(facts, offer);
        self.record_cipher(handshake.cipher, offer);
    }

    fn record_cipher(&mut self, chosen: &'static str, offer: &Offer) {
        if is_aes_gcm(chosen) {
            return;
        }
        let known = self.ciphers.len() < NAMES || self.ciphers.contains_key(chosen);
        let name = if known { chosen } else { super::OTHER };
        let is_13 = !chosen.contains(UP_TO_TLS12);
        let mut offered = offer.ciphers.iter().map(|suite| suite.name());
        let other = offered.any(|name| is_aes_gcm(name) && name.contains(UP_TO_TLS12) != is_13);
        // Put first by those for whom it is the fast one.
        let first = offer.ciphers.first();
        let is_asked_for = is_chacha20(chosen) && first.is_some_and(|it| is_chacha20(it.name()));
        let other = other && !is_asked_for;
        let kept = self.ciphers.entry(name).or_default();
        kept.hellos += 1;
        kept.aes_gcm += u64::from(other);
    }

    fn record_alert(&mut self, role: Role, facts: &Facts) {
        let (Some((direction, alert)), Some(offer)) = (facts.fatal_alert(), &facts.offer) else {
            return;
        };
        let sent = (direction == Direction::FromServer) == (role == Role::Server);
        let kept = self.turned_away.entry((sent, alert.name())).or_default();
        kept.hellos += 1;
        let newest = offer.versions.iter().max_by_key(|version| version.0);
        count(
            &mut kept.newest_versions,
            newest.map(|version| version.name()),
        );
        count(
            &mut kept.groups,
            offer.groups.iter().map(|group| group.name()),
        );
        count(
            &mut kept.ciphers,
            offer.ciphers.iter().map(|suite| suite.name()),
        );
    }

    /// Completed full handshakes of a kind, by what else their clients would have taken.
    pub fn alternatives(&self, wanted: impl Fn(&Chosen) -> bool) -> Alternatives {
        let those = self.chosen.iter().filter(|(chosen, _)| wanted(chosen));
        those.fold(Alternatives::default(), |sum, (_, one)| sum.plus(*one))
    }
}

/// In the names of suites that TLS 1.3 does not have.
const UP_TO_TLS12: &str = "_WITH_";

/// Whether a suite of that name protects data with AES-GCM.
fn is_aes_gcm(suite: &str) -> bool {
    suite.contains("_GCM_") && suite.contains("AES_")
}

fn is_chacha20(suite: &str) -> bool {
    suite.contains("_CHACHA20_")
}

/// Counts each name once, and together as `other` those for which there is no room.
fn count(counts: &mut Counts, names: impl IntoIterator<Item = &'static str>) {
    let mut beyond = false;
    for name in names.into_iter().collect::<BTreeSet<_>>() {
        if counts.len() < NAMES || counts.contains_key(name) {
            *counts.entry(name).or_default() += 1;
        } else {
            beyond = true;
        }
    }
    if beyond {
        *counts.entry(super::OTHER).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::*;
    use tlsprof_evidence::hello::fixture;
    use tlsprof_evidence::sample;

    fn facts(name: &str) -> Facts {
        let mut all = fixture::all().iter();
        let one = all.find(|one| one.name == name).unwrap();
        *fixture::fed(one.whole()).into_facts().unwrap()
    }

    fn recorded(handshake: &Handshake, facts: &Facts) -> Consequences {
        let mut kept = Consequences::default();
        kept.record(handshake, facts);
        kept
    }

    #[test]
    fn what_else_a_client_would_have_taken() {
        // OpenSSL's client: all curves, all algorithms.
        for name in ["openssl30-tls13-full", "openssl30-tls12-full"] {
            let kept = recorded(&sample::handshake(), &facts(name));
            let sum = kept.alternatives(|chosen| chosen.full && chosen.signature == "rsa_2048");
            assert_eq!(
                (sum.hellos, sum.x25519, sum.secp256r1_only),
                (1, 1, 0),
                "{name}"
            );
            assert_eq!(sum.ecdsa, 1, "{name}");
        }
    }

    #[test]
    fn rsa_key_transport_is_told_from_a_handshake_without_keys() {
        let without = Handshake {
            group: "none",
            signature: "none",
            ..sample::handshake()
        };
        let kept = recorded(&without, &facts("openssl30-tls12-rsa-transport"));
        assert_eq!(
            kept.alternatives(|chosen| chosen.signature == RSA_TRANSPORT)
                .hellos,
            1
        );
    }

    #[test]
    fn client_certificates_are_counted_where_they_travel_in_clear() {
        let kept = recorded(
            &sample::handshake(),
            &facts("openssl30-tls12-client-certificate"),
        );
        assert_eq!(kept.client_certificates, 1);
        let kept = recorded(&sample::handshake(), &facts("openssl30-tls12-full"));
        assert_eq!(kept.client_certificates, 0);
    }

    #[test]
    fn who_was_turned_away_is_told_by_the_alert_and_its_sender() {
        let failed = Handshake {
            outcome: Outcome::Failed,
            ..sample::handshake()
        };
        let kept = recorded(&failed, &facts("openssl30-no-common-version"));
        let away = &kept.turned_away[&(true, "protocol_version")];
        assert_eq!(away.hellos, 1);
        assert!(kept.chosen.is_empty());
        let kept = recorded(&failed, &facts("openssl30-tls12-client-rejects"));
        assert!(kept.turned_away.contains_key(&(false, "unknown_ca")));
    }

    #[test]
    fn a_client_that_offers_everything_takes_bounded_room() {
        let mut counts = Counts::new();
        let names =
            (0..=u16::MAX).map(|number| tlsprof_evidence::hello::CipherSuite(number).name());
        count(&mut counts, names.clone());
        count(&mut counts, names);
        assert!(counts.len() <= NAMES + 1);
        assert!(counts[super::super::OTHER] >= 2);
    }
}
