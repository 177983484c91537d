//! The address of a Grafana.

use std::str::FromStr;

use ureq::http::Uri;

/// Where a Grafana is, without a slash at its end: `https://grafana.example.org`, or
/// with a path where it is served below one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl(String);

impl BaseUrl {
    /// The address of a part of its API, such as `/api/annotations`.
    pub fn of(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }
}

impl FromStr for BaseUrl {
    type Err = String;

    /// # Errors
    /// A sentence that says what would be right. It never repeats the address, which
    /// may hold a password.
    fn from_str(text: &str) -> Result<Self, String> {
        const RIGHT: &str = "such as `https://grafana.example.org`";
        let uri: Uri = text
            .parse()
            .map_err(|_| format!("is not an address of a Grafana, {RIGHT}"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(format!("must begin with http:// or https://, {RIGHT}"));
        }
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        if authority.contains('@') {
            return Err(
                "must not hold a user or a password: tlsprof logs in with a token".to_owned(),
            );
        }
        if uri.query().is_some() || text.contains('#') {
            return Err(format!("must end with the host or a path, {RIGHT}"));
        }
        Ok(Self(text.trim_end_matches('/').to_owned()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_path_is_kept_and_a_slash_is_not_doubled() {
        let cases = [
            ("http://localhost:3000", "http://localhost:3000/api/x"),
            ("https://g.example.org/", "https://g.example.org/api/x"),
            (
                "https://example.org/grafana/",
                "https://example.org/grafana/api/x",
            ),
            ("http://[::1]:3000", "http://[::1]:3000/api/x"),
        ];
        for (text, whole) in cases {
            assert_eq!(text.parse::<BaseUrl>().unwrap().of("/api/x"), whole);
        }
    }

    #[test]
    fn what_is_wrong_is_said_without_the_address() {
        let cases = [
            ("grafana", "http://"),
            ("localhost:3000", "http://"),
            ("ftp://example.org", "http://"),
            ("https://admin:secret@example.org", "password"),
            ("https://example.org/?orgId=1", "path"),
            ("https://example.org/#x", "path"),
            ("http://", "address"),
            ("", "address"),
        ];
        for (text, part) in cases {
            let error = text.parse::<BaseUrl>().unwrap_err();
            assert!(
                error.contains(part) && !error.contains("secret"),
                "{text}: {error}"
            );
        }
    }
}
