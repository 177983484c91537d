//! Annotations sent to a Grafana.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use serde::Deserialize;
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

use super::annotation::Annotation;
use super::url::BaseUrl;
use crate::outlet::terminal::{printable, shorten};

/// From looking up the name to the last byte of the answer. The report is written
/// before; nobody is kept waiting for long.
const AT_MOST: Duration = Duration::from_secs(10);
/// Bytes of an answer that are read.
const LONGEST_ANSWER: u64 = 64 * 1024;
/// Characters of a refusal that are shown.
const LONGEST_REASON: usize = 200;

/// A service-account token of Grafana. It is never shown.
#[derive(Clone)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// What a file or a variable holds is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read Grafana's token from {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// It holds nothing, several lines, or what no HTTP header can carry.
    #[error("{0} holds no token of Grafana, which is one word of ASCII")]
    NoToken(String),
}

impl Token {
    /// The token in that file; space around it does not count.
    ///
    /// # Errors
    /// When there is none.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let text = fs::read_to_string(path);
        let text = text.map_err(|error| TokenError::Read(path.to_owned(), error))?;
        Self::parse(&text, &path.display().to_string())
    }

    /// The token in `text`, which came from `place`.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str, place: &str) -> Result<Self, TokenError> {
        let word = text.trim();
        if word.is_empty() || !word.chars().all(|c| c.is_ascii_graphic()) {
            return Err(TokenError::NoToken(place.to_owned()));
        }
        Ok(Self(word.to_owned()))
    }
}

/// A Grafana that is told of load tests.
#[derive(Clone, Debug)]
pub struct Grafana {
    url: BaseUrl,
    token: Token,
}

/// Grafana has not taken an annotation.
#[derive(Debug, thiserror::Error)]
pub enum GrafanaError {
    /// It could not be asked, or did not answer.
    #[error("{0}")]
    Unreachable(String),
    /// It refused.
    #[error("Grafana refused it with status {status}{reason}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What Grafana says, after a colon, and what to do; empty where nothing is known.
        reason: String,
    },
    /// The address answers, but not as Grafana does.
    #[error("what answers there is not Grafana's API; is the address right?")]
    NotGrafana,
}

/// Grafana's answer; the id is there if the annotation was made.
#[derive(Default, Deserialize)]
struct Answer {
    #[serde(default)]
    id: Option<u64>,
    #[serde(default)]
    message: String,
}

impl Grafana {
    /// A Grafana at that address, which knows that token.
    pub const fn new(url: BaseUrl, token: Token) -> Self {
        Self { url, token }
    }

    /// Sends an annotation; its id. Takes ten seconds at most.
    ///
    /// # Errors
    /// When Grafana does not take it.
    pub fn send(&self, annotation: &Annotation) -> Result<u64, GrafanaError> {
        let body = serde_json::to_string(annotation)
            .map_err(|error| GrafanaError::Unreachable(error.to_string()))?;
        let response = client()
            .post(self.url.of("/api/annotations"))
            .header("Authorization", format!("Bearer {}", self.token.0))
            .header("Content-Type", "application/json")
            .header("Accept", "application/json")
            .send(body);
        let mut response = response.map_err(|error| unreachable(&error))?;
        let status = response.status().as_u16();
        let text = response.body_mut().with_config().limit(LONGEST_ANSWER);
        let text = text.read_to_string().map_err(|error| unreachable(&error))?;
        judge(status, &text)
    }
}

/// Redirects are not followed: the token would go where nobody said.
fn client() -> Agent {
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(RootCerts::PlatformVerifier)
        .build();
    Agent::config_builder()
        .tls_config(tls)
        .timeout_global(Some(AT_MOST))
        .max_redirects(0)
        .http_status_as_error(false)
        .user_agent(concat!("tlsprof/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}

fn judge(status: u16, text: &str) -> Result<u64, GrafanaError> {
    let answer: Answer = serde_json::from_str(text).unwrap_or_default();
    if (200..300).contains(&status) {
        return answer.id.ok_or(GrafanaError::NotGrafana);
    }
    let message = printable(&answer.message);
    let mut reason = match shorten(&message, LONGEST_REASON) {
        said if said.is_empty() => String::new(),
        said => format!(": {said}"),
    };
    reason.push_str(match status {
        300..=399 => "; give the address that it redirects to",
        401 => "; is the token right, and not expired?",
        403 => "; the token needs a role of Editor, or the permission annotations:create",
        404 => "; is Grafana served below a path? Then the address must end with it",
        _ => "",
    });
    Err(GrafanaError::Refused { status, reason })
}

fn unreachable(error: &ureq::Error) -> GrafanaError {
    let said = error.to_string();
    let help = match error {
        ureq::Error::Timeout(_) => {
            return GrafanaError::Unreachable(format!("no answer within {} s", AT_MOST.as_secs()));
        }
        _ if said.contains("invalid peer certificate") => {
            "; if the certificate is of your own authority, add that to the system's, or name its file in SSL_CERT_FILE"
        }
        _ => "",
    };
    let said = printable(&said);
    GrafanaError::Unreachable(format!("{}{help}", shorten(&said, LONGEST_REASON)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_token_is_one_word() {
        assert_eq!(Token::parse(" glsa_abc\n", "file").unwrap().0, "glsa_abc");
        for text in ["", " \n", "two words", "two\nlines", "ü"] {
            let error = Token::parse(text, "file").unwrap_err().to_string();
            assert!(error.starts_with("file holds no token"), "{error}");
        }
    }

    #[test]
    fn a_token_is_not_shown() {
        let token = Token::parse("glsa_abc", "file").unwrap();
        let grafana = Grafana::new("http://localhost".parse().unwrap(), token);
        assert!(!format!("{grafana:?}").contains("glsa"));
    }

    #[test]
    fn answers_of_grafana() {
        let made = r#"{"message":"Annotation added","id":7}"#;
        assert_eq!(judge(200, made).unwrap(), 7);
        let refused = |status, text| judge(status, text).unwrap_err().to_string();
        assert!(refused(200, "<html>a login page</html>").contains("not Grafana's API"));
        let text = refused(401, r#"{"message":"Invalid API key"}"#);
        assert!(
            text.contains("401: Invalid API key; is the token"),
            "{text}"
        );
        assert!(refused(403, "no").contains("annotations:create"));
        assert!(refused(302, "").contains("redirects"));
        assert_eq!(refused(500, "x"), "Grafana refused it with status 500");
        let drives = refused(500, r#"{"message":"\u001b[2J"}"#);
        assert!(!drives.contains('\u{1b}'), "{drives}");
    }
}
