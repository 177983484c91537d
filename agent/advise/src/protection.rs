//! How records are protected: the part of a cipher suite that each byte pays for.

/// A cipher with what authenticates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protection {
    /// AES-128 in GCM.
    Aes128Gcm,
    /// AES-256 in GCM.
    Aes256Gcm,
    /// ChaCha20 with Poly1305.
    ChaCha20,
    /// AES-128 in CCM, with a tag of 16 or 8 bytes.
    Aes128Ccm,
    /// AES-256 in CCM, with a tag of 16 or 8 bytes.
    Aes256Ccm,
    /// AES-128 in CBC, with HMAC.
    Aes128Cbc(Hash),
    /// AES-256 in CBC, with HMAC.
    Aes256Cbc(Hash),
    /// Triple DES in CBC, with HMAC-SHA1.
    TripleDes,
}

/// The hash of an HMAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hash {
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
}

impl Protection {
    /// All that suites of the registry combine.
    pub const ALL: [Self; 11] = [
        Self::Aes128Gcm,
        Self::Aes256Gcm,
        Self::ChaCha20,
        Self::Aes128Cbc(Hash::Sha1),
        Self::Aes256Cbc(Hash::Sha1),
        Self::Aes128Cbc(Hash::Sha256),
        Self::Aes256Cbc(Hash::Sha256),
        Self::Aes256Cbc(Hash::Sha384),
        Self::Aes128Ccm,
        Self::Aes256Ccm,
        Self::TripleDes,
    ];

    /// Of a suite by its name in the registry; None for what nobody times here.
    pub fn of(suite: &str) -> Option<Self> {
        // `TLS_RSA_WITH_AES_128_CBC_SHA`, `TLS_AES_128_GCM_SHA256`.
        let cipher = suite.split_once("_WITH_").map_or_else(
            || suite.strip_prefix("TLS_").unwrap_or(suite),
            |(_, cipher)| cipher,
        );
        Some(match cipher {
            "AES_128_GCM_SHA256" => Self::Aes128Gcm,
            "AES_256_GCM_SHA384" => Self::Aes256Gcm,
            "CHACHA20_POLY1305_SHA256" => Self::ChaCha20,
            "AES_128_CBC_SHA" => Self::Aes128Cbc(Hash::Sha1),
            "AES_256_CBC_SHA" => Self::Aes256Cbc(Hash::Sha1),
            "AES_128_CBC_SHA256" => Self::Aes128Cbc(Hash::Sha256),
            "AES_256_CBC_SHA256" => Self::Aes256Cbc(Hash::Sha256),
            "AES_256_CBC_SHA384" => Self::Aes256Cbc(Hash::Sha384),
            "3DES_EDE_CBC_SHA" => Self::TripleDes,
            ccm if ccm.starts_with("AES_128_CCM") => Self::Aes128Ccm,
            ccm if ccm.starts_with("AES_256_CCM") => Self::Aes256Ccm,
            _ => return None,
        })
    }

    /// Whether it is what others are compared with.
    pub(crate) const fn is_gcm(self) -> bool {
        matches!(self, Self::Aes128Gcm | Self::Aes256Gcm)
    }

    /// AES-GCM with a key of the same length.
    pub(crate) const fn gcm(self) -> Self {
        match self {
            Self::Aes256Gcm | Self::ChaCha20 | Self::Aes256Ccm | Self::Aes256Cbc(_) => {
                Self::Aes256Gcm
            }
            _ => Self::Aes128Gcm,
        }
    }

    /// Its name, also in what a calibration says.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Aes128Gcm => "AES-128-GCM",
            Self::Aes256Gcm => "AES-256-GCM",
            Self::ChaCha20 => "ChaCha20-Poly1305",
            Self::Aes128Ccm => "AES-128-CCM",
            Self::Aes256Ccm => "AES-256-CCM",
            Self::Aes128Cbc(Hash::Sha1) => "AES-128-CBC-HMAC-SHA1",
            Self::Aes128Cbc(Hash::Sha256) => "AES-128-CBC-HMAC-SHA256",
            Self::Aes128Cbc(Hash::Sha384) => "AES-128-CBC-HMAC-SHA384",
            Self::Aes256Cbc(Hash::Sha1) => "AES-256-CBC-HMAC-SHA1",
            Self::Aes256Cbc(Hash::Sha256) => "AES-256-CBC-HMAC-SHA256",
            Self::Aes256Cbc(Hash::Sha384) => "AES-256-CBC-HMAC-SHA384",
            Self::TripleDes => "3DES-CBC-HMAC-SHA1",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_are_told_by_what_each_byte_pays_for() {
        let cases = [
            ("TLS_AES_128_GCM_SHA256", Some(Protection::Aes128Gcm)),
            (
                "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
                Some(Protection::Aes256Gcm),
            ),
            ("TLS_CHACHA20_POLY1305_SHA256", Some(Protection::ChaCha20)),
            (
                "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384",
                Some(Protection::Aes256Cbc(Hash::Sha384)),
            ),
            (
                "TLS_RSA_WITH_AES_128_CBC_SHA",
                Some(Protection::Aes128Cbc(Hash::Sha1)),
            ),
            ("TLS_AES_128_CCM_8_SHA256", Some(Protection::Aes128Ccm)),
            (
                "TLS_ECDHE_ECDSA_WITH_AES_256_CCM",
                Some(Protection::Aes256Ccm),
            ),
            ("TLS_RSA_WITH_3DES_EDE_CBC_SHA", Some(Protection::TripleDes)),
            ("TLS_RSA_WITH_CAMELLIA_128_CBC_SHA", None),
            ("TLS_RSA_WITH_NULL_SHA", None),
            ("unknown", None),
            ("other", None),
        ];
        for (suite, protection) in cases {
            assert_eq!(Protection::of(suite), protection, "{suite}");
        }
    }
}
