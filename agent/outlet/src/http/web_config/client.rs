//! Certificates of clients: whether they are asked for, and which are let in.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme,
};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::file::{TlsServerConfig, given};
use super::problem::Problem;
use super::tls::SECTION;

/// What checks the certificates of clients; None where they are not asked for one.
///
/// # Errors
/// When settings are missing, contradict each other, or ask for certificates
/// that nobody checks.
pub(super) fn verifier(
    raw: &TlsServerConfig,
    client_ca: Vec<CertificateDer<'static>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, Problem> {
    let said = given(raw.client_auth_type.as_ref());
    let line = said.map(|said| said.referenced.line());
    let problem =
        |message: &str| Problem::new(&format!("{SECTION}.client_auth_type"), line, message);
    let mandatory = match said.map_or("NoClientCert", |said| said.value.as_str()) {
        "NoClientCert" if client_ca.is_empty() => {
            refuse_names(raw)?;
            return Ok(None);
        }
        "NoClientCert" => {
            let message = "must be RequireAndVerifyClientCert or VerifyClientCertIfGiven where \
                           there is a client_ca";
            return Err(problem(message));
        }
        "RequireAndVerifyClientCert" => true,
        "VerifyClientCertIfGiven" => {
            refuse_names(raw)?;
            false
        }
        "RequestClientCert" | "RequireAnyClientCert" | "RequireClientCert" => {
            let message = "is not supported: the certificate would not be verified. Use \
                           RequireAndVerifyClientCert or VerifyClientCertIfGiven";
            return Err(problem(message));
        }
        _ => {
            let message = "must be NoClientCert, VerifyClientCertIfGiven or \
                           RequireAndVerifyClientCert";
            return Err(problem(message));
        }
    };
    let mut roots = RootCertStore::empty();
    let (taken, _) = roots.add_parsable_certificates(client_ca);
    if taken == 0 {
        let message = "needs client_ca_file, the CA certificates for clients";
        return Err(problem(message));
    }
    let builder = WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(provider));
    let builder = if mandatory {
        builder
    } else {
        builder.allow_unauthenticated()
    };
    let verifier = builder
        .build()
        .map_err(|error| problem(&format!("cannot be done: {error}")))?;
    let names = raw.client_allowed_sans.as_ref();
    Ok(Some(match names {
        Some(names) => Arc::new(Named {
            verifier,
            names: names.value.clone(),
        }),
        None => verifier,
    }))
}

/// `client_allowed_sans` means nothing where a client need not show a certificate.
fn refuse_names(raw: &TlsServerConfig) -> Result<(), Problem> {
    raw.client_allowed_sans.as_ref().map_or(Ok(()), |names| {
        let message = "needs client_auth_type: RequireAndVerifyClientCert";
        Err(Problem::of(
            &format!("{SECTION}.client_allowed_sans"),
            names,
            message,
        ))
    })
}

/// Lets in certificates that have one of these names, after all other checks.
#[derive(Debug)]
struct Named {
    verifier: Arc<dyn ClientCertVerifier>,
    names: Vec<String>,
}

impl Named {
    /// Whether a subject alternative name (DNS, e-mail, IP or URI) is one of them.
    fn admits(&self, certificate: &CertificateDer<'_>) -> bool {
        let Ok((_, parsed)) = X509Certificate::from_der(certificate) else {
            return false;
        };
        let Ok(Some(alternative)) = parsed.subject_alternative_name() else {
            return false;
        };
        let mut names = alternative.value.general_names.iter().filter_map(text);
        names.any(|name| self.names.contains(&name))
    }
}

fn text(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(text) | GeneralName::RFC822Name(text) | GeneralName::URI(text) => {
            Some((*text).to_owned())
        }
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let sixteen = || <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
            four.or_else(|_| sixteen())
                .ok()
                .map(|address| address.to_string())
        }
        _ => None,
    }
}

impl ClientCertVerifier for Named {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self
            .verifier
            .verify_client_cert(end_entity, intermediates, now)?;
        if self.admits(end_entity) {
            return Ok(verified);
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
