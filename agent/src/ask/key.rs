//! The kind of key in a certificate. Pure.

use x509_parser::prelude::{FromDer as _, X509Certificate};
use x509_parser::public_key::RSAPublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

/// The kind of key that a certificate (X.509, DER) is for, as the label
/// `signature` has it; `other` for a kind without a label. None if the bytes are
/// no certificate.
pub(super) fn kind_of_key(certificate: &[u8]) -> Option<&'static str> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    Some(kind(certificate.public_key()))
}

fn kind(key: &SubjectPublicKeyInfo<'_>) -> &'static str {
    // RFC 5480, 2.1.1.1 for the curves, RFC 8410, 3 for Ed25519 and Ed448.
    let curve = || {
        let parameters = key.algorithm.parameters.as_ref()?;
        Some(parameters.as_oid().ok()?.to_id_string())
    };
    match key.algorithm.algorithm.to_id_string().as_str() {
        "1.2.840.113549.1.1.1" | "1.2.840.113549.1.1.10" => rsa(key),
        "1.2.840.10045.2.1" => match curve().as_deref() {
            Some("1.2.840.10045.3.1.7") => "ecdsa_p256",
            Some("1.3.132.0.34") => "ecdsa_p384",
            Some("1.3.132.0.35") => "ecdsa_p521",
            _ => "other",
        },
        "1.3.101.112" => "ed25519",
        "1.3.101.113" => "ed448",
        _ => "other",
    }
}

/// By the length of the modulus in bytes, which is that of its signatures: by
/// them the other sources name RSA keys. The key of RSASSA-PSS (RFC 4055, 1.2)
/// has the same form.
fn rsa(key: &SubjectPublicKeyInfo<'_>) -> &'static str {
    let Ok((_, key)) = RSAPublicKey::from_der(&key.subject_public_key.data) else {
        return "other";
    };
    match key.modulus.len() - leading_zeros(key.modulus) {
        128 => "rsa_1024",
        256 => "rsa_2048",
        384 => "rsa_3072",
        512 => "rsa_4096",
        1024 => "rsa_8192",
        _ => "other",
    }
}

/// DER has a zero in front of a number whose first bit is set.
fn leading_zeros(number: &[u8]) -> usize {
    number.iter().take_while(|byte| **byte == 0).count()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop")]

    use proptest::prelude::*;

    use super::*;
    use crate::ask::tests::Identity;

    #[test]
    fn kinds_of_real_certificates() {
        for (options, kind) in [
            (&["-newkey", "rsa:1024"][..], "rsa_1024"),
            (&["-newkey", "rsa:2048"], "rsa_2048"),
            (&["-newkey", "rsa:3072"], "rsa_3072"),
            (&["-newkey", "rsa:4096"], "rsa_4096"),
            (&["-newkey", "rsa:1536"], "other"),
            (
                &["-newkey", "rsa-pss", "-pkeyopt", "rsa_keygen_bits:2048"],
                "rsa_2048",
            ),
            (&Identity::P256, "ecdsa_p256"),
            (&Identity::ec("P-384"), "ecdsa_p384"),
            (&Identity::ec("P-521"), "ecdsa_p521"),
            (&Identity::ec("secp256k1"), "other"),
            (&["-newkey", "ed25519"], "ed25519"),
            (&["-newkey", "ed448"], "ed448"),
        ] {
            let made = Identity::make(options);
            assert_eq!(kind_of_key(&made.certificate), Some(kind), "{options:?}");
        }
    }

    #[test]
    fn what_is_cut_off_is_no_certificate() {
        let made = Identity::make(&Identity::P256);
        for end in 0..made.certificate.len() {
            assert_eq!(kind_of_key(made.certificate.get(..end).unwrap()), None);
        }
    }

    #[test]
    fn a_certificate_with_any_byte_changed_is_survived() {
        let made = Identity::make(&Identity::RSA_2048);
        for at in 0..made.certificate.len() {
            let mut changed = made.certificate.clone();
            *changed.get_mut(at).unwrap() ^= 0xff;
            kind_of_key(&changed);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            kind_of_key(&bytes);
        }
    }
}
