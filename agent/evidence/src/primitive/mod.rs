//! Which cryptographic primitive code computes: by the name of its function, else by its
//! instructions. Pure: names and kinds of code in, a primitive out.
//!
//! What is not proved is [`Primitive::NotIdentified`]. A primitive is what is computed, not what for:
//! big-number arithmetic is RSA's, finite-field Diffie-Hellman's and some curves', a hash is a
//! signature's and a key derivation's.

mod calls;
mod code;
mod names;
mod survey;

pub use code::{MAX_FUNCTION, by_code};
pub use names::by_name;
pub use survey::identify_all;

use crate::fingerprint::Kind;

/// What code computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Primitive {
    /// RSA and finite-field Diffie-Hellman, in code that nothing else uses: exponentiation, padding.
    RsaDh,
    /// RSA and finite-field Diffie-Hellman; curves that a library has no code of their own for.
    BigNumber,
    /// Of a library that all public-key algorithms share: GMP, below nettle and GnuTLS.
    Multiprecision,
    /// NIST P-256: ECDH and ECDSA.
    P256,
    /// NIST P-384.
    P384,
    /// NIST P-521.
    P521,
    /// A curve, which one is not known: code for several, and other curves.
    EllipticCurve,
    /// X25519 and Ed25519, which share their arithmetic.
    Curve25519,
    /// X448 and Ed448.
    Curve448,
    /// ML-KEM, and Kyber.
    MlKem,
    /// ML-DSA.
    MlDsa,
    /// Arithmetic with long carry chains, of an algorithm that is not known.
    PublicKey,
    /// SHA-1 and SHA-2.
    Sha,
    /// SHA-3, SHAKE: ML-KEM and ML-DSA consist of it in large part.
    Sha3,
    /// HMAC, HKDF and TLS's PRF, but for their hash.
    KeyDerivation,
    /// AES in any mode, GHASH included.
    Aes,
    /// ChaCha20 and Poly1305.
    ChaCha,
    /// ASN.1, PEM and X.509.
    X509,
    /// Random numbers, but for the cipher or hash that makes them.
    Random,
    /// Allocating, copying and comparing memory.
    Memory,
    /// Code with a name that is none of these: the protocol, the program.
    Other,
    /// The kernel: system calls, page faults.
    Kernel,
    /// Code without a name, and instructions that prove nothing.
    NotIdentified,
}

impl Primitive {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 23] = [
        Self::RsaDh,
        Self::BigNumber,
        Self::Multiprecision,
        Self::P256,
        Self::P384,
        Self::P521,
        Self::EllipticCurve,
        Self::Curve25519,
        Self::Curve448,
        Self::MlKem,
        Self::MlDsa,
        Self::PublicKey,
        Self::Sha,
        Self::Sha3,
        Self::KeyDerivation,
        Self::Aes,
        Self::ChaCha,
        Self::X509,
        Self::Random,
        Self::Memory,
        Self::Other,
        Self::Kernel,
        Self::NotIdentified,
    ];

    /// Its name in metrics and reports.
    pub const fn label(self) -> &'static str {
        match self {
            Self::RsaDh => "rsa_dh",
            Self::BigNumber => "big_number",
            Self::Multiprecision => "multiprecision",
            Self::P256 => "p256",
            Self::P384 => "p384",
            Self::P521 => "p521",
            Self::EllipticCurve => "elliptic_curve",
            Self::Curve25519 => "curve25519",
            Self::Curve448 => "curve448",
            Self::MlKem => "ml_kem",
            Self::MlDsa => "ml_dsa",
            Self::PublicKey => "public_key",
            Self::Sha => "sha",
            Self::Sha3 => "sha3",
            Self::KeyDerivation => "key_derivation",
            Self::Aes => "aes",
            Self::ChaCha => "chacha20_poly1305",
            Self::X509 => "x509",
            Self::Random => "random",
            Self::Memory => "memory",
            Self::Other => "other",
            Self::Kernel => "kernel",
            Self::NotIdentified => "not_identified",
        }
    }
}

/// How a primitive was identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// By the name of the function, or as the kernel.
    Name,
    /// By its instructions.
    Instructions,
    /// Not at all.
    None,
}

/// What instructions prove of code without a name.
pub const fn by_instructions(kind: Kind) -> (Primitive, Evidence) {
    let primitive = match kind {
        Kind::Aes => Primitive::Aes,
        Kind::ChaCha => Primitive::ChaCha,
        Kind::Sha => Primitive::Sha,
        Kind::PublicKey => Primitive::PublicKey,
        Kind::Copy => Primitive::Memory,
        Kind::Other => return (Primitive::NotIdentified, Evidence::None),
    };
    (primitive, Evidence::Instructions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_primitive_has_a_label_of_its_own() {
        let labels: BTreeSet<_> = Primitive::ALL.map(Primitive::label).into();
        assert_eq!(labels.len(), Primitive::ALL.len());
    }

    #[test]
    fn instructions_that_prove_nothing_identify_nothing() {
        let nothing = (Primitive::NotIdentified, Evidence::None);
        assert_eq!(by_instructions(Kind::Other), nothing);
        let proved = (Primitive::Aes, Evidence::Instructions);
        assert_eq!(by_instructions(Kind::Aes), proved);
    }
}
