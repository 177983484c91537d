//! The file as it is written.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::{DuplicateKeyPolicy, Spanned, UserMessageFormatter, options};

use super::problem::Problem;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    pub(crate) tls_server_config: Option<TlsServerConfig>,
    pub(crate) http_server_config: Option<HttpServerConfig>,
    pub(crate) rate_limit: Option<IgnoredAny>,
    pub(crate) basic_auth_users: Option<BTreeMap<String, Spanned<String>>>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TlsServerConfig {
    pub(crate) cert: Option<Spanned<String>>,
    pub key: Option<Spanned<String>>,
    pub(crate) client_ca: Option<Spanned<String>>,
    pub(crate) cert_file: Option<Spanned<String>>,
    pub(crate) key_file: Option<Spanned<String>>,
    pub(crate) client_auth_type: Option<Spanned<String>>,
    pub(crate) client_ca_file: Option<Spanned<String>>,
    pub(crate) client_allowed_sans: Option<Spanned<Vec<String>>>,
    pub(crate) min_version: Option<Spanned<String>>,
    pub(crate) max_version: Option<Spanned<String>>,
    pub(crate) cipher_suites: Option<Vec<Spanned<String>>>,
    pub(crate) prefer_server_cipher_suites: Option<bool>,
    pub(crate) curve_preferences: Option<Vec<Spanned<String>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct HttpServerConfig {
    pub(crate) http2: Option<Spanned<bool>>,
    pub(crate) headers: Option<BTreeMap<String, Spanned<String>>>,
}

/// A text that is there and not empty, which the toolkit takes for the same.
pub(super) fn given(text: Option<&Spanned<String>>) -> Option<&Spanned<String>> {
    text.filter(|text| !text.value.is_empty())
}

/// Reads YAML; an empty file is a file without keys.
///
/// # Errors
/// What is wrong and where, never with a value: some are secret.
pub(super) fn parse(text: &str) -> Result<File, Problem> {
    let options = options! { duplicate_keys: DuplicateKeyPolicy::Error };
    let parsed = serde_saphyr::from_str_with_options::<Option<File>>(text, options);
    match parsed {
        Ok(file) => Ok(file.unwrap_or_default()),
        Err(error) => {
            let line = error.location().map(|location| location.line());
            let said = error
                .without_snippet()
                .render_with_formatter(&UserMessageFormatter);
            // The line stands in front.
            let message = said.split(" at line ").next().unwrap_or(&said);
            Err(Problem::new("", line, message))
        }
    }
}
