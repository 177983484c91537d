//! Says which TLS library an image is, or holds.

use std::fmt;

use super::elf::{ElfError, ElfView, Symbols};

/// Read-only data searched for the version text. Node.js has 45 MiB of it.
const MAX_TEXT_SEARCH: u64 = 64 << 20;
/// Longest version text ("OpenSSL 3.0.19-fips 27 Jan 2026").
const MAX_VERSION: usize = 64;
const VERSION_PREFIX: &[u8] = b"OpenSSL ";

/// Generation of OpenSSL, as far as its functions differ for a profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// 1.1.1 and its patch releases.
    V1_1_1,
    /// 3.0 and later.
    V3,
}

/// OpenSSL, or one half of it, in one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// Its generation.
    pub generation: Generation,
    /// The image holds libssl: handshakes.
    pub ssl: bool,
    /// The image holds libcrypto: the steps.
    pub crypto: bool,
    /// `OpenSSL 3.0.19 27 Jan 2026`, empty where the image does not say it: a
    /// separate libssl of 3.x seldom does.
    pub version: String,
}

impl Library {
    /// `3.0.19`: its version without name and date, empty where it is not known.
    pub fn release(&self) -> &str {
        self.version
            .split_ascii_whitespace()
            .nth(1)
            .unwrap_or_default()
    }
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.version.as_str(), self.generation) {
            ("", Generation::V1_1_1) => write!(f, "OpenSSL 1.1.1")?,
            ("", Generation::V3) => write!(f, "OpenSSL 3 or later")?,
            (version, _) => write!(f, "{version}")?,
        }
        match (self.ssl, self.crypto) {
            (true, true) => write!(f, " (libssl and libcrypto)"),
            (true, false) => write!(f, " (libssl)"),
            _ => write!(f, " (libcrypto)"),
        }
    }
}

/// A TLS library with OpenSSL's function names that is not OpenSSL 1.1.1 or
/// later: its functions behave differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Unsupported {
    /// Google's fork.
    #[error("BoringSSL, which has none of OpenSSL's handshake functions")]
    BoringSsl,
    /// Amazon's fork of BoringSSL.
    #[error("AWS-LC, which has none of OpenSSL's handshake functions")]
    AwsLc,
    /// OpenBSD's fork, and OpenSSL before 1.1.
    #[error("LibreSSL, or OpenSSL before 1.1")]
    LibreSslOrOld,
    /// It lacks the functions that 1.1.1 added.
    #[error("OpenSSL before 1.1.1, or an unknown fork of it")]
    UnknownFork,
}

/// What was found in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// No TLS library that is known here.
    None,
    /// OpenSSL.
    OpenSsl(Library),
    /// One of its relatives.
    Unsupported(Unsupported),
}

/// What an image says about TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detection {
    /// The TLS library in it.
    pub tls: Tls,
    /// The image may switch stacks in the middle of a handshake: an engine that
    /// calls `ASYNC_pause_job`, or a program with coroutines (makecontext(3)). A
    /// process that maps it must have no uretprobes. Coroutines of another make
    /// are not seen.
    pub switches_stacks: bool,
}

/// Function names that tell the libraries apart.
mod marks {
    /// In libssl of OpenSSL and all its relatives.
    pub(super) const SSL: [&str; 3] = ["SSL_free", "SSL_clear", "TLS_method"];
    /// Added to libssl by OpenSSL 1.1.1; in none of the forks. It is in the
    /// same object file as `SSL_free`.
    pub(super) const SSL_1_1_1: &str = "SSL_stateless";
    /// Only in OpenSSL's libssl, from 3.0 on; in the same object file.
    pub(super) const SSL_3: &str = "SSL_sendfile";
    /// In libcrypto of OpenSSL and all its relatives.
    pub(super) const CRYPTO: &str = "EVP_PKEY_derive";
    /// In libcrypto of OpenSSL from 1.1.0 on; in none of the forks.
    pub(super) const CRYPTO_1_1: [&str; 2] = ["ASYNC_start_job", "ASYNC_init_thread"];
    /// One call to sign, added by 1.1.1 (and by forks).
    pub(super) const CRYPTO_1_1_1: &str = "EVP_DigestSign";
    /// The error queue of 3.0 and of 1.1.1; each calls its own for every error.
    pub(super) const CRYPTO_3: &str = "ERR_vset_error";
    pub(super) const BORINGSSL: [&str; 3] = [
        "SSL_get_early_data_reason",
        "BORINGSSL_self_test",
        "BORINGSSL_integrity_test",
    ];
    pub(super) const AWS_LC: [&str; 2] = ["awslc_version_string", "awslc_api_version_num"];
    /// A macro in OpenSSL from 1.1.0 on, a function before and in the forks.
    pub(super) const OLD_SSL: &str = "SSLv23_method";
    /// The same, in libcrypto.
    pub(super) const OLD_CRYPTO: &str = "EVP_MD_CTX_create";
    pub(super) const ASYNC_PAUSE: &str = "ASYNC_pause_job";
    /// makecontext(3): coroutines, which may switch stacks in the middle of any
    /// call. libcrypto has them for ASYNC jobs, which `ASYNC_PAUSE` tells of.
    pub(super) const MAKE_CONTEXT: &str = "makecontext";
}

/// Looks for a TLS library. Costs one pass over the symbol names of the image,
/// and more only where there is one.
///
/// # Errors
/// See [`ElfError`].
pub fn detect(image: &ElfView) -> Result<Detection, ElfError> {
    let mut names = vec![
        marks::SSL_1_1_1,
        marks::SSL_3,
        marks::CRYPTO,
        marks::CRYPTO_1_1_1,
        marks::CRYPTO_3,
        marks::OLD_SSL,
        marks::OLD_CRYPTO,
        marks::ASYNC_PAUSE,
        marks::MAKE_CONTEXT,
    ];
    names.extend(marks::SSL);
    names.extend(marks::CRYPTO_1_1);
    names.extend(marks::BORINGSSL);
    names.extend(marks::AWS_LC);
    let symbols = image.symbols(&names)?;
    let mut tls = classify(&symbols);
    if let Tls::OpenSsl(library) = &mut tls {
        library.version = version(image)?;
    }
    Ok(Detection {
        tls,
        switches_stacks: switches_stacks(&symbols),
    })
}

/// Whether an image may switch stacks, as [`Detection::switches_stacks`] has it,
/// without looking for a TLS library.
///
/// # Errors
/// See [`ElfError`].
pub fn may_switch_stacks(image: &ElfView) -> Result<bool, ElfError> {
    let mut names = vec![marks::ASYNC_PAUSE, marks::MAKE_CONTEXT];
    names.extend(marks::CRYPTO_1_1);
    Ok(switches_stacks(&image.symbols(&names)?))
}

fn switches_stacks(symbols: &Symbols) -> bool {
    let has_async_jobs = marks::CRYPTO_1_1.iter().any(|name| symbols.defines(name));
    let has_coroutines = symbols.imports(marks::MAKE_CONTEXT) && !has_async_jobs;
    symbols.imports(marks::ASYNC_PAUSE) || has_coroutines
}

fn classify(symbols: &Symbols) -> Tls {
    let any = |names: &[&str]| names.iter().any(|name| symbols.defines(name));
    let ssl = marks::SSL.iter().all(|name| symbols.defines(name));
    let crypto = symbols.defines(marks::CRYPTO);
    if !ssl && !crypto {
        return match symbols.defines(marks::OLD_SSL) {
            true => Tls::Unsupported(Unsupported::LibreSslOrOld),
            false => Tls::None,
        };
    }
    if any(&marks::AWS_LC) {
        return Tls::Unsupported(Unsupported::AwsLc);
    }
    if any(&marks::BORINGSSL) {
        return Tls::Unsupported(Unsupported::BoringSsl);
    }
    let new_ssl = any(&[marks::SSL_1_1_1, marks::SSL_3]);
    let new_crypto = any(&marks::CRYPTO_1_1) && symbols.defines(marks::CRYPTO_1_1_1);
    if ssl && !new_ssl || crypto && !new_crypto {
        return Tls::Unsupported(match any(&[marks::OLD_SSL, marks::OLD_CRYPTO]) {
            true => Unsupported::LibreSslOrOld,
            false => Unsupported::UnknownFork,
        });
    }
    let v3 = symbols.defines(marks::SSL_3) || symbols.defines(marks::CRYPTO_3);
    Tls::OpenSsl(Library {
        generation: if v3 {
            Generation::V3
        } else {
            Generation::V1_1_1
        },
        ssl,
        crypto,
        version: String::new(),
    })
}

/// The library's own version text, empty where the image does not hold it.
fn version(image: &ElfView) -> Result<String, ElfError> {
    let mut found = String::new();
    image.scan_read_only_data(MAX_TEXT_SEARCH, MAX_VERSION as u64, |bytes| {
        if let Some(text) = version_text(bytes) {
            text.clone_into(&mut found);
        }
        !found.is_empty()
    })?;
    Ok(found)
}

/// Finds a NUL-terminated text of the form `OpenSSL 1.2.3…`, at the beginning
/// of a string: other texts name versions too ("enable OpenSSL 3.0 legacy
/// provider" in Node.js).
fn version_text(bytes: &[u8]) -> Option<&str> {
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'O');
    starts
        .filter(|(start, _)| {
            let before = start.checked_sub(1).and_then(|before| bytes.get(before));
            before.is_none_or(|byte| *byte == 0)
        })
        .filter_map(|(start, _)| bytes.get(start..))
        .filter(|candidate| candidate.starts_with(VERSION_PREFIX))
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
mod tests;
