//! Names of functions as their authors wrote them.

use std::fmt;

use cpp_demangle::{BorrowedSymbol, DemangleOptions};

/// Longer names stay as they are: a few bytes of C++ can stand for gigabytes.
const LONGEST: usize = 512;
/// How deep a name of C++ may be nested; names come from images that nobody has checked.
const DEEPEST: u32 = 64;

/// The name of a function of Rust or C++ without what the compiler added, of C++ without
/// its parameters; any other as it is.
pub(in crate::session) fn readable(symbol: &str) -> String {
    match rustc_demangle::try_demangle(symbol) {
        Ok(name) => format!("{name:#}"),
        Err(_) => of_cpp(symbol).unwrap_or_else(|| symbol.to_owned()),
    }
}

fn of_cpp(symbol: &str) -> Option<String> {
    if !symbol.starts_with("_Z") {
        return None;
    }
    let parsing = cpp_demangle::ParseOptions::default().recursion_limit(DEEPEST);
    let (parsed, _clone) =
        BorrowedSymbol::with_tail_and_options(symbol.as_bytes(), &parsing).ok()?;
    let writing = DemangleOptions::new().no_params().recursion_limit(DEEPEST);
    let mut name = Bounded(String::new());
    parsed.structured_demangle(&mut name, &writing).ok()?;
    Some(name.0)
}

/// Takes no more than [`LONGEST`] bytes.
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_as_they_were_written() {
        for (symbol, expected) in [
            (
                "_ZN4node6crypto7TLSWrap6EncOutEv",
                "node::crypto::TLSWrap::EncOut",
            ),
            (
                "_ZN4core3ptr13drop_in_place17h0123456789abcdefE",
                "core::ptr::drop_in_place",
            ),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            // A part that the compiler has put elsewhere.
            ("_ZN2v88internal4HeapD2Ev.cold", "v8::internal::Heap::~Heap"),
            ("SSL_write", "SSL_write"),
            ("crypto/tls.(*Conn).Write", "crypto/tls.(*Conn).Write"),
            ("_Zwhatever", "_Zwhatever"),
        ] {
            assert_eq!(readable(symbol), expected);
        }
    }

    #[test]
    fn a_name_that_stands_for_too_much_stays_as_it_is() {
        let nested = (0..24).fold("1a".to_owned(), |inner, _| format!("1aI{inner}{inner}E"));
        for symbol in [
            format!("_Z{}", &nested[..4000]),
            format!("_Z{}i", "P".repeat(4000)),
        ] {
            assert!(readable(&symbol).len() <= symbol.len().max(LONGEST));
        }
    }

    proptest! {
        #[test]
        fn no_name_makes_it_panic(name in "_Z[NISt0-9a-zE_]{0,200}") {
            let found = readable(&name);
            prop_assert!(found.len() <= LONGEST.max(name.len()));
        }
    }
}
