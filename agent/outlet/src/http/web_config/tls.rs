//! `tls_server_config` as a configuration of rustls.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, SupportedKxGroup, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, SupportedCipherSuite, SupportedProtocolVersion};
use serde_saphyr::Spanned;

use super::client;
use super::contents::Contents;
use super::file::{TlsServerConfig, given};
use super::names::{GROUPS, OLD_VERSIONS, SUITES, VERSIONS, look_up};
use super::problem::Problem;

/// What the section is called in messages.
pub(super) const SECTION: &str = "tls_server_config";

/// The configuration for new connections; None where the section is empty.
///
/// # Errors
/// When a file cannot be read, something is missing, or rustls cannot do it.
pub(super) fn server(
    raw: &TlsServerConfig,
    folder: &Path,
    contents: &mut Contents,
) -> Result<Option<Arc<ServerConfig>>, Problem> {
    if *raw == TlsServerConfig::default() {
        return Ok(None);
    }
    let mut pem = Source { folder, contents };
    let chain = pem
        .one_of("cert", [&raw.cert, &raw.cert_file])?
        .required()?;
    let key = pem.one_of("key", [&raw.key, &raw.key_file])?.required()?;
    let client_ca = pem.one_of("client_ca", [&raw.client_ca, &raw.client_ca_file])?;
    let provider = Arc::new(CryptoProvider {
        cipher_suites: suites(raw)?,
        kx_groups: groups(raw)?,
        ..ring::default_provider()
    });
    let verifier = client::verifier(raw, client_ca.certificates()?, &provider)?;
    let of_rustls = |error: rustls::Error| {
        let message = format!("these settings conflict: {error}");
        Problem::new(SECTION, None, message)
    };
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions(raw)?)
        .map_err(of_rustls)?;
    let builder = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder
        .with_single_cert(chain.certificates()?, key.key()?)
        .map_err(|error| key.problem(format!("does not fit the certificate: {error}")))?;
    config.ignore_client_order = raw.prefer_server_cipher_suites.unwrap_or(true);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(Arc::new(config)))
}

/// Where PEM comes from.
struct Source<'a> {
    folder: &'a Path,
    contents: &'a mut Contents,
}

impl Source<'_> {
    /// The PEM that is given under a key, or in the file named under the key
    /// with `_file`, but not both.
    fn one_of(&mut self, name: &str, of: [&Option<Spanned<String>>; 2]) -> Result<Pem, Problem> {
        let [inline, file] = of.map(|text| given(text.as_ref()));
        let key = format!("{SECTION}.{name}");
        let file_key = format!("{key}_file");
        match (inline, file) {
            (Some(_), Some(file)) => {
                let message = format!("{name} sets the same: remove one of the two");
                Err(Problem::of(&file_key, file, message))
            }
            (Some(inline), None) => {
                let bytes = inline.value.clone().into_bytes();
                Ok(Pem::new(key, inline, bytes))
            }
            (None, Some(file)) => {
                let path = self.folder.join(&file.value);
                let bytes = self.contents.read(&path).map_err(|error| {
                    let message = format!("cannot read {}: {error}", path.display());
                    Problem::of(&file_key, file, message)
                })?;
                Ok(Pem::new(file_key, file, bytes))
            }
            (None, None) => Ok(Pem {
                key: file_key,
                line: None,
                bytes: None,
            }),
        }
    }
}

/// Text in PEM, and where it was said.
struct Pem {
    key: String,
    line: Option<u64>,
    bytes: Option<Vec<u8>>,
}

impl Pem {
    fn new(key: String, said: &Spanned<String>, bytes: Vec<u8>) -> Self {
        Self {
            key,
            line: Some(said.referenced.line()),
            bytes: Some(bytes),
        }
    }

    fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::new(&self.key, self.line, message)
    }

    fn required(self) -> Result<Self, Problem> {
        match self.bytes {
            Some(_) => Ok(self),
            None => Err(self.problem("is missing: TLS needs a certificate and its key")),
        }
    }

    /// The certificates; none where nothing is given.
    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, Problem> {
        let Some(bytes) = &self.bytes else {
            return Ok(Vec::new());
        };
        let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
        match parsed {
            Ok(certificates) if certificates.is_empty() => {
                Err(self.problem("has no certificate in PEM"))
            }
            Ok(certificates) => Ok(certificates),
            Err(error) => Err(self.problem(format!("is not PEM: {error}"))),
        }
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, Problem> {
        let bytes = self.bytes.as_deref().unwrap_or_default();
        PrivateKeyDer::from_pem_slice(bytes)
            .map_err(|error| self.problem(format!("has no private key in PEM: {error}")))
    }
}

/// The versions from `min_version` to `max_version`.
fn versions(raw: &TlsServerConfig) -> Result<Vec<&'static SupportedProtocolVersion>, Problem> {
    let place = |name: &str, said: &Option<Spanned<String>>, default: usize| {
        let Some(said) = given(said.as_ref()) else {
            return Ok(default);
        };
        let found = VERSIONS.iter().position(|(known, _)| *known == said.value);
        found.ok_or_else(|| {
            let message = if OLD_VERSIONS.contains(&said.value.as_str()) {
                format!("`{}` is not supported; supported: TLS12, TLS13", said.value)
            } else {
                format!("`{}` is not a version; use TLS12 or TLS13", said.value)
            };
            Problem::of(&format!("{SECTION}.{name}"), said, message)
        })
    };
    let least = place("min_version", &raw.min_version, 0)?;
    let most = place("max_version", &raw.max_version, VERSIONS.len() - 1)?;
    let range = VERSIONS.get(least..=most).unwrap_or_default();
    if range.is_empty() {
        let message = "must not be above max_version";
        let line = raw.min_version.as_ref().map(|said| said.referenced.line());
        return Err(Problem::new(
            &format!("{SECTION}.min_version"),
            line,
            message,
        ));
    }
    Ok(range.iter().map(|(_, version)| *version).collect())
}

/// The suites that are named, in that order; all where none are. Where none of
/// TLS 1.3 is named, all of those: in the toolkit too the list is for the
/// versions before.
fn suites(raw: &TlsServerConfig) -> Result<Vec<SupportedCipherSuite>, Problem> {
    let named = all_named("cipher_suites", raw.cipher_suites.as_deref(), &SUITES)?;
    if named.is_empty() {
        return Ok(ring::DEFAULT_CIPHER_SUITES.to_vec());
    }
    let is_13 = |suite: &SupportedCipherSuite| suite.tls13().is_some();
    let all = ring::DEFAULT_CIPHER_SUITES.iter().copied();
    let mut chosen: Vec<_> = all.filter(is_13).collect();
    if named.iter().any(is_13) {
        chosen.clear();
    }
    chosen.extend(named);
    Ok(chosen)
}

fn groups(raw: &TlsServerConfig) -> Result<Vec<&'static dyn SupportedKxGroup>, Problem> {
    let named = all_named(
        "curve_preferences",
        raw.curve_preferences.as_deref(),
        &GROUPS,
    )?;
    if named.is_empty() {
        return Ok(ring::DEFAULT_KX_GROUPS.to_vec());
    }
    Ok(named)
}

fn all_named<T: Copy>(
    key: &str,
    names: Option<&[Spanned<String>]>,
    table: &[(&str, T)],
) -> Result<Vec<T>, Problem> {
    let names = names.unwrap_or_default().iter();
    names
        .map(|name| {
            look_up(table, &name.value)
                .map_err(|message| Problem::of(&format!("{SECTION}.{key}"), name, message))
        })
        .collect()
}
