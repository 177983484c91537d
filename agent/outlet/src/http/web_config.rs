//! The web configuration file of Prometheus's exporter toolkit: TLS, headers and
//! users of the listener.
//!
//! The format is that of
//! <https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md>,
//! so that one file serves all exporters of a host. What this listener cannot do
//! is an error that names the key and its line; nothing is ignored.

mod client;
mod contents;
mod file;
mod names;
mod problem;
mod tls;

use std::path::Path;
use std::sync::Arc;

use axum::http::{HeaderName, HeaderValue};
use rustls::ServerConfig;

use super::users::Users;
use tlsprof_common::ConfigError;

pub(super) use contents::Contents;
use file::{File, HttpServerConfig, given};
use problem::Problem;

/// What the file asks for. The default is what holds without a file: no TLS,
/// and everyone is let in.
#[derive(Debug, Default)]
pub(super) struct WebConfig {
    /// TLS; plain HTTP where None.
    pub tls: Option<Arc<ServerConfig>>,
    /// Added to every answer.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// Who is let in; everyone where None.
    pub(crate) users: Option<Arc<Users>>,
}

/// Headers that the toolkit lets set, each with the values it may have; any
/// where there are none.
const HEADERS: [(&str, &[&str]); 5] = [
    ("Strict-Transport-Security", &[]),
    ("X-Content-Type-Options", &["nosniff"]),
    ("X-Frame-Options", &["deny", "sameorigin"]),
    ("X-XSS-Protection", &[]),
    ("Content-Security-Policy", &[]),
];

impl WebConfig {
    /// Reads the file at `path`, and the certificates and keys it names, all
    /// through `contents`.
    ///
    /// # Errors
    /// When a file cannot be read, is not valid, or asks for what this listener
    /// cannot do.
    pub(super) fn load(path: &Path, contents: &mut Contents) -> Result<Self, ConfigError> {
        let bytes = contents.read(path).map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        let text = String::from_utf8_lossy(&bytes);
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, folder, contents).map_err(|problem| problem.at(path, &text))
    }

    fn parse(text: &str, folder: &Path, contents: &mut Contents) -> Result<Self, Problem> {
        let file = file::parse(text)?;
        if file.rate_limit.is_some() {
            let message = "is not supported. The agent shares one response among concurrent scrapes \
                           and needs no limit";
            return Err(Problem::new("rate_limit", None, message));
        }
        let tls = match &file.tls_server_config {
            Some(raw) => tls::server(raw, folder, contents)?,
            None => None,
        };
        let http = file.http_server_config.as_ref();
        Ok(Self {
            tls,
            headers: http.map_or(Ok(Vec::new()), headers)?,
            users: users(&file)?,
        })
    }
}

fn headers(raw: &HttpServerConfig) -> Result<Vec<(HeaderName, HeaderValue)>, Problem> {
    if let Some(http2) = &raw.http2
        && http2.value
    {
        let message = "HTTP/2 is not supported: leave the key out, or set it to false";
        return Err(Problem::of("http_server_config.http2", http2, message));
    }
    let mut made = Vec::new();
    for (name, value) in raw.headers.iter().flatten() {
        let problem = |message: String| {
            Problem::of(
                &format!("http_server_config.headers.{name}"),
                value,
                message,
            )
        };
        let Some((_, values)) = HEADERS.iter().find(|(known, _)| known == name) else {
            let known = HEADERS.map(|(known, _)| known).join(", ");
            return Err(problem(format!(
                "cannot be set; supported headers: {known}"
            )));
        };
        if given(Some(value)).is_none() {
            continue;
        }
        if !values.is_empty() && !values.contains(&value.value.as_str()) {
            let allowed = values.join(" or ");
            return Err(problem(format!("must be {allowed}")));
        }
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_str(&value.value);
        match (name, value) {
            (Ok(name), Ok(value)) => made.push((name, value)),
            _ => return Err(problem("is not a valid HTTP header".to_owned())),
        }
    }
    Ok(made)
}

fn users(file: &File) -> Result<Option<Arc<Users>>, Problem> {
    let Some(raw) = &file.basic_auth_users else {
        return Ok(None);
    };
    let mut hashes = Vec::new();
    for (user, hash) in raw {
        let problem =
            |message: String| Problem::of(&format!("basic_auth_users.{user}"), hash, message);
        if user.contains(':') {
            let message = "a user name cannot contain a colon (RFC 7617, section 2)";
            return Err(problem(message.to_owned()));
        }
        let parts: bcrypt::HashParts = hash.value.parse().map_err(|_| {
            problem(
                "is not a bcrypt hash; `htpasswd -nBC 10 NAME` asks for a password and creates one"
                    .to_owned(),
            )
        })?;
        hashes.push((user.clone(), hash.value.clone(), parts.get_cost()));
    }
    Ok((!hashes.is_empty()).then(|| Arc::new(Users::new(hashes))))
}

#[cfg(test)]
mod tests;
