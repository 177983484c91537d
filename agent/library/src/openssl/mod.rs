//! OpenSSL 1.1.1 and later, whole or in its two halves. Its relatives have its function
//! names and behave differently.

mod functions;
mod parts;
mod reasons;

use tlsprof_common::{Step, contract};

use crate::model::{Defines, Found, Library, MAX_VERSION, Unsupported};

pub use parts::{Generation, Parts};

/// OpenSSL.
pub(crate) static LIBRARY: Library = Library {
    number: contract::TLSPROF_LIBRARY_OPENSSL,
    name: "OpenSSL",
    releases: "OpenSSL 1.1.1 and 3.x",
    steps: true,
    marks: MARKS,
    recognise,
    version,
    reason: reasons::name,
};

/// Google's fork.
pub const BORINGSSL: Unsupported =
    Unsupported("BoringSSL, which has none of OpenSSL's handshake functions");
/// Amazon's fork of BoringSSL.
pub const AWS_LC: Unsupported =
    Unsupported("AWS-LC, which has none of OpenSSL's handshake functions");
/// OpenBSD's fork, and OpenSSL before 1.1.
pub const LIBRESSL_OR_OLD: Unsupported = Unsupported("LibreSSL, or OpenSSL before 1.1");
/// It lacks the functions that 1.1.1 added.
pub const UNKNOWN_FORK: Unsupported = Unsupported("OpenSSL before 1.1.1, or an unknown fork of it");

impl Parts {
    /// How these parts are named, and what to probe in them.
    pub fn found(self) -> Found {
        Found {
            library: &LIBRARY,
            edition: match self.generation {
                Generation::V1_1_1 => "OpenSSL 1.1.1",
                Generation::V3 => "OpenSSL 3 or later",
            },
            part: match (self.ssl, self.crypto) {
                (true, true) => "libssl and libcrypto",
                (true, false) => "libssl",
                _ => "libcrypto",
            },
            handshakes: self.ssl,
            steps: self.crypto,
            functions: functions::functions(self),
            version: String::new(),
        }
    }
}

/// The step that a function of libcrypto is called for, by its name, with all that it calls itself. `defines`: what a
/// part of OpenSSL defines that calls it, or is it.
pub fn step_of(name: &str, defines: Defines<'_>) -> Option<Step> {
    let of = |generation| functions::step_of(name, generation);
    let (old, new) = (of(Generation::V1_1_1), of(Generation::V3));
    if old == new {
        return old;
    }
    match generation(defines) {
        Generation::V1_1_1 => old,
        Generation::V3 => new,
    }
}

fn generation(defines: Defines<'_>) -> Generation {
    match [SSL_3, CRYPTO_3].iter().any(|name| defines(name)) {
        true => Generation::V3,
        false => Generation::V1_1_1,
    }
}

/// In libssl of OpenSSL and all its relatives.
const SSL: [&str; 3] = ["SSL_free", "SSL_clear", "TLS_method"];
/// Added to libssl by OpenSSL 1.1.1; in none of the forks. It is in the
/// same object file as `SSL_free`.
const SSL_1_1_1: &str = "SSL_stateless";
/// Only in OpenSSL's libssl, from 3.0 on; in the same object file.
const SSL_3: &str = "SSL_sendfile";
/// In libcrypto of OpenSSL and all its relatives.
const CRYPTO: &str = "EVP_PKEY_derive";
/// Asynchronous jobs: in libcrypto of OpenSSL from 1.1.0 on; in none of the forks.
pub const ASYNC_JOBS: [&str; 2] = ["ASYNC_start_job", "ASYNC_init_thread"];
/// One call to sign, added by 1.1.1 (and by forks).
const CRYPTO_1_1_1: &str = "EVP_DigestSign";
/// The error queue of 3.0; it calls this for every error.
const CRYPTO_3: &str = "ERR_vset_error";
const BORINGSSL_ONLY: [&str; 3] = [
    "SSL_get_early_data_reason",
    "BORINGSSL_self_test",
    "BORINGSSL_integrity_test",
];
const AWS_LC_ONLY: [&str; 2] = ["awslc_version_string", "awslc_api_version_num"];
/// A macro in OpenSSL from 1.1.0 on, a function before and in the forks.
const OLD_SSL: &str = "SSLv23_method";
/// The same, in libcrypto.
const OLD_CRYPTO: &str = "EVP_MD_CTX_create";

const MARKS: &[&str] = &[
    SSL[0],
    SSL[1],
    SSL[2],
    SSL_1_1_1,
    SSL_3,
    CRYPTO,
    ASYNC_JOBS[0],
    ASYNC_JOBS[1],
    CRYPTO_1_1_1,
    CRYPTO_3,
    BORINGSSL_ONLY[0],
    BORINGSSL_ONLY[1],
    BORINGSSL_ONLY[2],
    AWS_LC_ONLY[0],
    AWS_LC_ONLY[1],
    OLD_SSL,
    OLD_CRYPTO,
];

fn recognise(defines: Defines<'_>) -> Option<Result<Found, Unsupported>> {
    let any = |names: &[&str]| names.iter().any(|name| defines(name));
    let ssl = SSL.iter().all(|name| defines(name));
    let crypto = defines(CRYPTO);
    if !ssl && !crypto {
        return defines(OLD_SSL).then_some(Err(LIBRESSL_OR_OLD));
    }
    if any(&AWS_LC_ONLY) {
        return Some(Err(AWS_LC));
    }
    if any(&BORINGSSL_ONLY) {
        return Some(Err(BORINGSSL));
    }
    let new_ssl = any(&[SSL_1_1_1, SSL_3]);
    let new_crypto = any(&ASYNC_JOBS) && defines(CRYPTO_1_1_1);
    if ssl && !new_ssl || crypto && !new_crypto {
        return Some(Err(match any(&[OLD_SSL, OLD_CRYPTO]) {
            true => LIBRESSL_OR_OLD,
            false => UNKNOWN_FORK,
        }));
    }
    let parts = Parts {
        generation: generation(defines),
        ssl,
        crypto,
    };
    Some(Ok(parts.found()))
}

/// Finds a NUL-terminated text of the form `OpenSSL 1.2.3…`, at the beginning
/// of a string: other texts name versions too ("enable OpenSSL 3.0 legacy
/// provider" in Node.js).
fn version(bytes: &[u8]) -> Option<&str> {
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'O');
    starts
        .filter(|(start, _)| {
            let before = start.checked_sub(1).and_then(|before| bytes.get(before));
            before.is_none_or(|byte| *byte == 0)
        })
        .filter_map(|(start, _)| bytes.get(start..))
        .filter(|candidate| candidate.starts_with(b"OpenSSL "))
        .find_map(whole_version)
}

/// The string at the beginning of `bytes`, if it is a version text.
fn whole_version(bytes: &[u8]) -> Option<&str> {
    let text = bytes.get(..MAX_VERSION).unwrap_or(bytes);
    let end = text.iter().position(|byte| *byte == 0)?;
    let text = str::from_utf8(text.get(..end)?).ok()?;
    let number = text.split_whitespace().nth(1)?;
    let is_number = |part: &str| part.starts_with(|first: char| first.is_ascii_digit());
    (number
        .split('.')
        .take(3)
        .filter(|part| is_number(part))
        .count()
        == 3)
        .then_some(text)
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn version_texts() {
        assert_eq!(
            version(b"x\0OpenSSL 1.1.1w  11 Sep 2023\0"),
            Some("OpenSSL 1.1.1w  11 Sep 2023")
        );
        assert_eq!(
            version(b"OOpenSSL 3.0.1 \0OpenSSL 3.6.5\0"),
            Some("OpenSSL 3.6.5")
        );
        assert_eq!(version(b"enable OpenSSL 3.0.0 legacy provider\0"), None);
        assert_eq!(
            version(b"\0OpenSSL default\0OpenSSL 3.0 x\0OpenSSL 3.0.1 cut"),
            None
        );
    }
}
