//! What a server chooses.

use super::codes::{CipherSuite, Group, SignatureScheme, Version};

/// A ServerHello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Version.
    pub version: Version,
    /// Cipher suite.
    pub cipher: CipherSuite,
    /// Application protocol; in TLS 1.3 it is encrypted.
    pub protocol: Option<&'static str>,
    /// TLS 1.3: an offered pre-shared key was accepted.
    pub psk: bool,
    /// The session id is the one that the client sent, and not empty.
    pub(crate) session_id_echoed: bool,
    /// How keys are exchanged, as far as this is known yet.
    pub key_exchange: KeyExchange,
}

/// How the premaster secret comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyExchange {
    /// Not seen yet, or unknown.
    Unknown,
    /// No asymmetric key exchange: resumption without one, or a plain PSK.
    None,
    /// By a named group.
    Group(Group),
    /// Up to TLS 1.2: DHE with a prime of so many bits that is none of RFC 7919.
    Dhe(usize),
    /// Up to TLS 1.2: ECDHE over a curve that has no name.
    UnnamedCurve,
    /// Up to TLS 1.2: encrypted to the server's RSA key.
    RsaTransport,
}

impl KeyExchange {
    /// The value of the metric label: a group by its registry name, `dhe_2048`
    /// for DHE by the length of its prime, `none` where no keys are agreed on.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::None | Self::RsaTransport => "none",
            Self::Group(group) => group.name(),
            Self::UnnamedCurve => "other",
            Self::Dhe(512) => "dhe_512",
            Self::Dhe(768) => "dhe_768",
            Self::Dhe(1024) => "dhe_1024",
            Self::Dhe(1536) => "dhe_1536",
            Self::Dhe(2048) => "dhe_2048",
            Self::Dhe(3072) => "dhe_3072",
            Self::Dhe(4096) => "dhe_4096",
            Self::Dhe(6144) => "dhe_6144",
            Self::Dhe(8192) => "dhe_8192",
            Self::Dhe(_) => "dhe_other",
        }
    }
}

/// A signature that travelled in clear (up to TLS 1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Its algorithm; None before TLS 1.2, where the suite implies it.
    pub(crate) scheme: Option<SignatureScheme>,
    /// Whether the key is an RSA key.
    pub(crate) rsa: bool,
    /// Its length in bytes.
    pub length: usize,
}

impl Signature {
    /// The kind of key that made it.
    pub fn key(self) -> &'static str {
        let key = match (self.rsa, self.scheme, self.length) {
            (true, ..) => rsa_key(self.length),
            (_, Some(SignatureScheme(0x0807)), 64) => Some("ed25519"),
            (_, Some(SignatureScheme(0x0808)), 114) => Some("ed448"),
            _ => ecdsa_key(self.length),
        };
        key.unwrap_or("other")
    }
}

/// The key of an RSA signature of so many bytes: it is as long as the modulus.
pub(crate) const fn rsa_key(length: usize) -> Option<&'static str> {
    Some(match length {
        128 => "rsa_1024",
        256 => "rsa_2048",
        384 => "rsa_3072",
        512 => "rsa_4096",
        1024 => "rsa_8192",
        _ => return None,
    })
}

/// The key of an ECDSA signature of so many bytes: it is (DER) two integers of the
/// curve's size and 6 to 9 bytes, less leading zeros.
pub(crate) const fn ecdsa_key(length: usize) -> Option<&'static str> {
    Some(match length {
        60..=72 => "ecdsa_p256",
        92..=104 => "ecdsa_p384",
        126..=139 => "ecdsa_p521",
        _ => return None,
    })
}
