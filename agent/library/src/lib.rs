//! The TLS libraries that can be probed, each as one value: how it is recognised, which
//! functions mark what, what its reasons are called. [`ALL`] is the one list of them.

pub mod gnutls;
pub mod openssl;
pub mod spec;

use std::fmt;

use tlsprof_common::Reason;

use spec::Function;

/// All libraries. Where an image holds several, the first is probed.
pub static ALL: &[&Library] = &[&openssl::LIBRARY, &gnutls::LIBRARY];

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
    pub releases: &'static str,
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
pub struct Unsupported(pub &'static str);

/// The TLS library of an image, by the functions that it defines. `defines` must know all
/// of [`marks`]. One that can be probed comes before one that cannot.
pub fn recognise(defines: Defines<'_>) -> Option<Result<Found, Unsupported>> {
    let all = ALL
        .iter()
        .filter_map(|library| (library.recognise)(defines));
    all.reduce(|first, next| match first {
        Ok(_) => first,
        Err(_) => next.or(first),
    })
}

/// The functions that any library is recognised by.
pub fn marks() -> impl Iterator<Item = &'static str> {
    ALL.iter().flat_map(|library| library.marks.iter().copied())
}

/// The name of a reason, `unknown` for one that has none.
pub fn reason_name(reason: Reason) -> String {
    let library = ALL.iter().find(|library| library.number == reason.library);
    library.map_or_else(
        || "unknown".to_owned(),
        |library| (library.reason)(reason.number),
    )
}

/// Whether the library of this name is probed, but the steps of its handshakes are not.
pub fn lacks_steps(name: &str) -> bool {
    ALL.iter()
        .any(|library| library.name == name && !library.steps)
}

/// What can be probed, for people: `OpenSSL 1.1.1 and 3.x, GnuTLS 3`.
pub fn supported() -> String {
    let all: Vec<&str> = ALL.iter().map(|library| library.releases).collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_of_one_library_each() {
        for (at, library) in ALL.iter().enumerate() {
            let others = ALL.iter().skip(at + 1);
            for other in others {
                assert_ne!(library.name, other.name);
                assert_ne!(library.number, other.number);
            }
            assert_ne!(library.number, 0, "socket calls have that number");
        }
    }

    #[test]
    fn a_reason_is_named_by_its_own_library() {
        let name = |library: &Library, number| {
            reason_name(Reason {
                library: library.number,
                number,
            })
        };
        assert_eq!(name(&openssl::LIBRARY, 193), "no shared cipher");
        assert_eq!(name(&openssl::LIBRARY, 110), "bad extension");
        assert_eq!(name(&gnutls::LIBRARY, 110), "premature termination");
        assert_eq!(reason_name(Reason::default()), "unknown");
    }

    #[test]
    fn each_names_all_functions_that_it_asks_for() {
        for library in ALL {
            let asked = std::cell::RefCell::new(Vec::new());
            for defined in [true, false] {
                let _ = (library.recognise)(&|name| {
                    asked.borrow_mut().push(name.to_owned());
                    defined
                });
            }
            for name in asked.into_inner() {
                assert!(library.marks.contains(&name.as_str()), "{name}");
            }
        }
    }
}
