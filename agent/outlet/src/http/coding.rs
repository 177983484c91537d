//! How bodies of answers are written down.

use std::io::Write as _;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use flate2::Compression;
use flate2::write::GzEncoder;

/// How a body is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Coding {
    /// As it is.
    Identity,
    /// A fifteenth of that, for the network's sake.
    Gzip,
}

impl Coding {
    /// Gzip where an Accept-Encoding header (RFC 9110, 12.5.3) has it, with a
    /// quality over 0.
    pub(super) fn negotiate(accept: &str) -> Self {
        let takes = |range: &str| {
            let mut parts = range.split(';').map(str::trim);
            let gzip = parts
                .next()
                .is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
            let quality = parts.find_map(|part| part.strip_prefix("q="));
            gzip && quality.is_none_or(|quality| quality.parse().is_ok_and(|q: f32| q > 0.0))
        };
        if accept.split(',').any(takes) {
            Self::Gzip
        } else {
            Self::Identity
        }
    }

    /// A body, written down so.
    pub(super) fn write(self, bytes: Vec<u8>) -> Vec<u8> {
        if self == Self::Identity {
            return bytes;
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        // Writing to memory does not fail.
        let written = encoder.write_all(&bytes).and_then(|()| encoder.finish());
        written.unwrap_or_default()
    }

    /// As the headers of a request have it.
    pub(super) fn asked(headers: &HeaderMap) -> Self {
        Self::negotiate(&all_of(headers, &header::ACCEPT_ENCODING))
    }

    /// The header that says so, if it is not the body as it is.
    pub(super) const fn header(self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            Self::Gzip => Some((header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))),
            Self::Identity => None,
        }
    }
}

/// Several lines mean the same as one with commas (RFC 9110, 5.3).
pub(super) fn all_of(headers: &HeaderMap, name: &HeaderName) -> String {
    let lines = headers.get_all(name).iter();
    let lines: Vec<&str> = lines.filter_map(|line| line.to_str().ok()).collect();
    lines.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_for_those_who_ask_for_it() {
        for accept in ["gzip", "br, GZIP;q=0.5", "deflate,gzip"] {
            assert_eq!(Coding::negotiate(accept), Coding::Gzip, "{accept}");
        }
        for accept in ["", "identity", "br", "gzip;q=0", "gzip;q=x", "*"] {
            assert_eq!(Coding::negotiate(accept), Coding::Identity, "{accept}");
        }
    }
}
