//! The TLS libraries that can be probed, each as one value: how it is recognised, which
//! functions mark what, what its reasons are called. [`ALL`] is the one list of them.

pub mod gnutls;
mod model;
pub mod openssl;
pub mod spec;

use tlsprof_common::Reason;

pub use model::{Defines, Found, Library, MAX_VERSION, Unsupported};

/// All libraries. Where an image holds several, the first is probed.
pub static ALL: &[&Library] = &[&openssl::LIBRARY, &gnutls::LIBRARY];

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
