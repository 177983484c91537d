//! What describes a TLS library.

use std::fmt;

use crate::spec::Function;

/// Longest version text in bytes ("OpenSSL 3.0.19-fips 27 Jan 2026").
pub const MAX_VERSION: usize = 64;

/// Whether an image defines a function.
pub type Defines<'a> = &'a dyn Fn(&str) -> bool;

/// A TLS library.
pub struct Library {
    /// Its number in the events of its probes (`enum tlsprof_library`).
    pub number: u32,
    /// What people call it.
    pub name: &'static str,
    /// The releases that can be probed: `OpenSSL 1.1.1 and 3.x`.
    pub(crate) releases: &'static str,
    /// Whether the steps of its handshakes can be probed.
    pub steps: bool,
    /// The functions that `recognise` asks for.
    pub marks: &'static [&'static str],
    /// What of the library, or of one that looks like it, an image is, by the functions
    /// that it defines. None for an image that has nothing to do with it.
    pub recognise: fn(Defines<'_>) -> Option<Result<Found, Unsupported>>,
    /// Finds the library's name and version in a stretch of read-only data:
    /// `OpenSSL 3.0.19 27 Jan 2026`.
    pub version: fn(&[u8]) -> Option<&str>,
    /// The name of a number for which it failed a handshake, `unknown` for one that
    /// it does not have.
    pub reason: fn(u32) -> String,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Library {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Library {}

/// A TLS library, or a part of it, in one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which.
    pub library: &'static Library,
    /// Its name, with what is known of its version by its functions: `OpenSSL 3 or later`.
    pub edition: &'static str,
    /// The part that is in the image: `libssl`.
    pub part: &'static str,
    /// The image runs handshakes.
    pub handshakes: bool,
    /// The image does the steps of handshakes, and they can be probed.
    pub steps: bool,
    /// What to probe.
    pub functions: Vec<&'static Function>,
    /// `OpenSSL 3.0.19 27 Jan 2026`, empty where the image does not say it: a
    /// separate libssl of 3.x seldom does.
    pub version: String,
}

impl Found {
    /// `3.0.19`: its version without name and date, empty where it is not known.
    pub fn release(&self) -> &str {
        self.version
            .split_ascii_whitespace()
            .nth(1)
            .unwrap_or_default()
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.version.as_str() {
            "" => self.edition,
            version => version,
        };
        write!(f, "{name} ({})", self.part)
    }
}

/// A library with the function names of one that can be probed, but other behaviour;
/// says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsupported(pub(crate) &'static str);
