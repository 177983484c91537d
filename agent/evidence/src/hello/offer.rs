//! What a client offers.

use super::codes::{CipherSuite, Group, SignatureScheme, Version};

/// Entries that are kept of one list of an offer. OpenSSL's longest list of
/// suites has 180.
pub const LISTED: usize = 200;

/// A ClientHello, without anything that names a host, a user or a session.
/// Lists are in the client's order, without GREASE (RFC 8701), and hold at
/// most [`LISTED`] entries; versions, groups and signature algorithms are in them once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Versions: `supported_versions`, or else the one of the hello.
    pub versions: Vec<Version>,
    /// Cipher suites, without signalling values.
    pub ciphers: Vec<CipherSuite>,
    /// Key exchange groups.
    pub groups: Vec<Group>,
    /// Groups for which the client has sent a key share (TLS 1.3).
    pub key_shares: Vec<Group>,
    /// Signature algorithms.
    pub signatures: Vec<SignatureScheme>,
    /// Application protocols (ALPN): well-known names, else `other`.
    pub protocols: Vec<&'static str>,
    /// It names the host that it wants. The name itself is never kept.
    pub server_name: bool,
    /// Its session id is not empty. It may stand for no session: see
    /// [`super::Offered::SessionId`].
    pub session_id: bool,
    /// It can take a ticket (RFC 5077).
    pub ticket_support: bool,
    /// It sends a ticket (RFC 5077).
    pub ticket: bool,
    /// It sends pre-shared keys (TLS 1.3): earlier sessions, or external keys.
    pub psk: bool,
    /// It sends early data (TLS 1.3).
    pub early_data: bool,
}

impl Offer {
    /// Offers TLS 1.3.
    pub(crate) fn has_13(&self) -> bool {
        self.versions.iter().any(|version| version.is_13())
    }

    /// Accepts a certificate with an ECDSA key on P-256. In TLS 1.3 its signature
    /// algorithm says so; before, a cipher suite and the curve must be offered too
    /// (RFC 8422, 5.1).
    pub fn accepts_ecdsa_p256(&self, tls13: bool) -> bool {
        let before = || {
            self.groups.contains(&Group::SECP256R1)
                && self.ciphers.iter().any(|suite| suite.is_ecdhe_ecdsa())
        };
        self.signatures.contains(&SignatureScheme::ECDSA_P256) && (tls13 || before())
    }

    /// Offers a group that withstands a quantum computer.
    pub fn post_quantum(&self) -> bool {
        self.groups.iter().any(|group| group.is_post_quantum())
    }
}
