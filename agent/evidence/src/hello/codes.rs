//! Numbers of the TLS registries (IANA, Transport Layer Security Parameters)
//! and their names.

use tls_parser::{TlsCipherAu, TlsCipherKx, TlsCipherSuite};

macro_rules! registry {
    ($(#[$doc:meta])* $type:ident($number:ty) { $($code:literal => $name:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(pub $number);

        impl $type {
            /// Stands for all numbers without a name, and has none itself.
            pub const OTHER: Self = Self(<$number>::MAX);

            /// Itself if it has a name, else [`Self::OTHER`]: few enough to count each.
            #[must_use]
            pub fn named(self) -> Self {
                if self.name() == Self::OTHER.name() { Self::OTHER } else { self }
            }

            /// Its name in the registry, or `other`.
            pub const fn name(self) -> &'static str {
                match self.0 {
                    $($code => $name,)+
                    _ => "other",
                }
            }
        }
    };
}

registry! {
    /// A protocol version. Its name is the label of metrics and reports.
    Version(u16) {
        0x0300 => "SSL3.0", 0x0301 => "TLS1.0", 0x0302 => "TLS1.1",
        0x0303 => "TLS1.2", 0x0304 => "TLS1.3",
    }
}

impl Version {
    /// TLS 1.2.
    pub const TLS12: Self = Self(0x0303);
    /// TLS 1.3.
    pub const TLS13: Self = Self(0x0304);

    /// TLS 1.3, or a draft of it (0x7f..).
    pub const fn is_13(self) -> bool {
        self.0 == Self::TLS13.0 || self.0 >> 8 == 0x7f
    }
}

registry! {
    /// A key exchange group.
    Group(u16) {
        1 => "sect163k1", 2 => "sect163r1", 3 => "sect163r2", 4 => "sect193r1",
        5 => "sect193r2", 6 => "sect233k1", 7 => "sect233r1", 8 => "sect239k1",
        9 => "sect283k1", 10 => "sect283r1", 11 => "sect409k1", 12 => "sect409r1",
        13 => "sect571k1", 14 => "sect571r1", 15 => "secp160k1", 16 => "secp160r1",
        17 => "secp160r2", 18 => "secp192k1", 19 => "secp192r1", 20 => "secp224k1",
        21 => "secp224r1", 22 => "secp256k1", 23 => "secp256r1", 24 => "secp384r1",
        25 => "secp521r1", 26 => "brainpoolP256r1", 27 => "brainpoolP384r1",
        28 => "brainpoolP512r1", 29 => "x25519", 30 => "x448",
        31 => "brainpoolP256r1tls13", 32 => "brainpoolP384r1tls13",
        33 => "brainpoolP512r1tls13", 34 => "GC256A", 35 => "GC256B", 36 => "GC256C",
        37 => "GC256D", 38 => "GC512A", 39 => "GC512B", 40 => "GC512C",
        41 => "curveSM2", 256 => "ffdhe2048", 257 => "ffdhe3072", 258 => "ffdhe4096",
        259 => "ffdhe6144", 260 => "ffdhe8192", 512 => "MLKEM512", 513 => "MLKEM768",
        514 => "MLKEM1024", 4587 => "SecP256r1MLKEM768", 4588 => "X25519MLKEM768",
        4589 => "SecP384r1MLKEM1024", 4590 => "curveSM2MLKEM768",
        25497 => "X25519Kyber768Draft00", 25498 => "SecP256r1Kyber768Draft00",
    }
}

impl Group {
    /// NIST P-256.
    pub const SECP256R1: Self = Self(23);
    /// Curve25519.
    pub const X25519: Self = Self(29);
    /// Curve25519 with ML-KEM.
    pub const X25519MLKEM768: Self = Self(4588);

    /// Whether it withstands a quantum computer: ML-KEM, alone or as a hybrid,
    /// and the drafts before it.
    pub(crate) const fn is_post_quantum(self) -> bool {
        matches!(self.0, 512..=514 | 4587..=4590 | 25497 | 25498)
    }
}

registry! {
    /// A signature algorithm.
    SignatureScheme(u16) {
        0x0201 => "rsa_pkcs1_sha1", 0x0203 => "ecdsa_sha1",
        0x0401 => "rsa_pkcs1_sha256", 0x0403 => "ecdsa_secp256r1_sha256",
        0x0420 => "rsa_pkcs1_sha256_legacy", 0x0501 => "rsa_pkcs1_sha384",
        0x0503 => "ecdsa_secp384r1_sha384", 0x0520 => "rsa_pkcs1_sha384_legacy",
        0x0601 => "rsa_pkcs1_sha512", 0x0603 => "ecdsa_secp521r1_sha512",
        0x0620 => "rsa_pkcs1_sha512_legacy", 0x0708 => "sm2sig_sm3",
        0x0709 => "gostr34102012_256a", 0x070a => "gostr34102012_256b",
        0x070b => "gostr34102012_256c", 0x070c => "gostr34102012_256d",
        0x070d => "gostr34102012_512a", 0x070e => "gostr34102012_512b",
        0x070f => "gostr34102012_512c", 0x0804 => "rsa_pss_rsae_sha256",
        0x0805 => "rsa_pss_rsae_sha384", 0x0806 => "rsa_pss_rsae_sha512",
        0x0807 => "ed25519", 0x0808 => "ed448", 0x0809 => "rsa_pss_pss_sha256",
        0x080a => "rsa_pss_pss_sha384", 0x080b => "rsa_pss_pss_sha512",
        0x081a => "ecdsa_brainpoolP256r1tls13_sha256",
        0x081b => "ecdsa_brainpoolP384r1tls13_sha384",
        0x081c => "ecdsa_brainpoolP512r1tls13_sha512",
        0x0904 => "mldsa44", 0x0905 => "mldsa65", 0x0906 => "mldsa87",
    }
}

impl SignatureScheme {
    /// ECDSA with SHA-256; in TLS 1.3 on P-256 only.
    pub(crate) const ECDSA_P256: Self = Self(0x0403);
}

registry! {
    /// What an alert says.
    Alert(u8) {
        0 => "close_notify", 10 => "unexpected_message", 20 => "bad_record_mac",
        21 => "decryption_failed", 22 => "record_overflow",
        30 => "decompression_failure", 40 => "handshake_failure",
        41 => "no_certificate", 42 => "bad_certificate",
        43 => "unsupported_certificate", 44 => "certificate_revoked",
        45 => "certificate_expired", 46 => "certificate_unknown",
        47 => "illegal_parameter", 48 => "unknown_ca", 49 => "access_denied",
        50 => "decode_error", 51 => "decrypt_error", 52 => "too_many_cids_requested",
        60 => "export_restriction", 70 => "protocol_version",
        71 => "insufficient_security", 80 => "internal_error",
        86 => "inappropriate_fallback", 90 => "user_canceled",
        100 => "no_renegotiation", 109 => "missing_extension",
        110 => "unsupported_extension", 111 => "certificate_unobtainable",
        112 => "unrecognized_name", 113 => "bad_certificate_status_response",
        114 => "bad_certificate_hash_value", 115 => "unknown_psk_identity",
        116 => "certificate_required", 117 => "general_error",
        120 => "no_application_protocol", 121 => "ech_required",
    }
}

/// Whether an alert ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AlertLevel {
    /// The handshake may go on.
    Warning,
    /// It does not. Unknown levels count as fatal.
    Fatal,
}

impl AlertLevel {
    pub(super) const fn of(level: u8) -> Self {
        if level == 1 {
            Self::Warning
        } else {
            Self::Fatal
        }
    }
}

/// A cipher suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CipherSuite(pub u16);

impl CipherSuite {
    /// Its name in the registry, or `other`.
    pub fn name(self) -> &'static str {
        TlsCipherSuite::from_id(self.0).map_or("other", |suite| suite.name)
    }

    /// How keys are exchanged up to TLS 1.2, in the words of the suite's name:
    /// `ECDHE_RSA` of `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`.
    pub(super) fn key_exchange(self) -> Option<&'static str> {
        let name = self.name().strip_prefix("TLS_")?;
        name.split_once("_WITH_").map(|(exchange, _)| exchange)
    }

    /// Ephemeral elliptic curves, and a certificate that signs with ECDSA; up to TLS 1.2.
    pub(super) fn is_ecdhe_ecdsa(self) -> bool {
        let suite = TlsCipherSuite::from_id(self.0);
        suite.is_some_and(|it| it.kx == TlsCipherKx::Ecdhe && it.au == TlsCipherAu::Ecdsa)
    }

    /// A number that stands for no suite: TLS_EMPTY_RENEGOTIATION_INFO_SCSV,
    /// TLS_FALLBACK_SCSV (RFC 5746, RFC 7507).
    pub(super) const fn is_signal(self) -> bool {
        matches!(self.0, 0x00ff | 0x5600)
    }
}

/// A number that a client sends only so that servers stay tolerant of unknown
/// ones (RFC 8701).
pub(super) const fn is_grease(code: u16) -> bool {
    code & 0x0f0f == 0x0a0a && code >> 8 == code & 0xff
}

/// Application protocols whose names are safe and useful to show
/// (IANA, TLS ALPN Protocol IDs).
const PROTOCOLS: &[&str] = &[
    "acme-tls/1",
    "coap",
    "co",
    "dicom",
    "dot",
    "doq",
    "ftp",
    "h2",
    "h2c",
    "h3",
    "http/0.9",
    "http/1.0",
    "http/1.1",
    "imap",
    "irc",
    "managesieve",
    "mqtt",
    "nbd",
    "nfs",
    "ntske/1",
    "pop3",
    "postgresql",
    "radius/1.0",
    "radius/1.1",
    "sip/2",
    "smb",
    "spdy/1",
    "spdy/2",
    "spdy/3",
    "stun.turn",
    "sunrpc",
    "tds/8.0",
    "webrtc",
    "xmpp-client",
    "xmpp-server",
];

/// The label of an application protocol; `other` for what is not well known,
/// since a peer can send any bytes.
pub(super) fn protocol(name: &[u8]) -> &'static str {
    PROTOCOLS
        .iter()
        .find(|known| known.as_bytes() == name)
        .copied()
        .unwrap_or("other")
}
