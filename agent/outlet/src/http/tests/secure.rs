//! The web configuration in force: TLS, users, headers, and what happens when
//! its files change.

use std::fs;
use std::path::Path;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto::ring, version};
use tempfile::TempDir;

use super::*;

/// A self-signed certificate.
pub(super) struct Certificate {
    cert: String,
    key: String,
    der: CertificateDer<'static>,
    key_der: Vec<u8>,
}

impl Certificate {
    pub(super) fn new(name: &str) -> Self {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        Self {
            cert: made.cert.pem(),
            key: made.signing_key.serialize_pem(),
            der: made.cert.der().clone(),
            key_der: made.signing_key.serialize_der(),
        }
    }

    fn write(&self, folder: &Path, name: &str) {
        fs::write(folder.join(format!("{name}.crt")), &self.cert).unwrap();
        fs::write(folder.join(format!("{name}.key")), &self.key).unwrap();
    }
}

/// A folder with a web configuration of TLS with the first certificate and these
/// further lines; the certificates are `0.crt` and so on.
pub(super) fn folder(certificates: &[Certificate], more: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (n, one) in certificates.iter().enumerate() {
        one.write(folder.path(), &n.to_string());
    }
    let tls = "tls_server_config:\n  cert_file: 0.crt\n  key_file: 0.key\n";
    fs::write(folder.path().join("web.yml"), format!("{tls}{more}")).unwrap();
    folder
}

fn secure(folder: &TempDir) -> Server {
    let access = Access::from_file(&folder.path().join("web.yml")).unwrap();
    start(access, BOUNDS)
}

type Versions = [&'static rustls::SupportedProtocolVersion];
static ONLY_12: [&rustls::SupportedProtocolVersion; 1] = [&version::TLS12];
static ONLY_13: [&rustls::SupportedProtocolVersion; 1] = [&version::TLS13];

/// A client that trusts one certificate.
struct Scraper<'a> {
    trusts: &'a Certificate,
    shows: Option<&'a Certificate>,
    only: &'static Versions,
}

impl<'a> Scraper<'a> {
    fn new(trusts: &'a Certificate) -> Self {
        Self {
            trusts,
            shows: None,
            only: rustls::ALL_VERSIONS,
        }
    }

    fn config(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.trusts.der.clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(self.only)
            .unwrap()
            .with_root_certificates(roots);
        match self.shows {
            Some(shown) => {
                let key = PrivateKeyDer::try_from(shown.key_der.clone()).unwrap();
                builder
                    .with_client_auth_cert(vec![shown.der.clone()], key)
                    .unwrap()
            }
            None => builder.with_no_client_auth(),
        }
    }

    /// The answer, or why there is none.
    fn get(&self, server: &Server, headers: &str) -> io::Result<String> {
        let name = ServerName::try_from("localhost").unwrap();
        let tls = ClientConnection::new(Arc::new(self.config()), name).unwrap();
        let mut stream = StreamOwned::new(tls, Client::connect(server.address())?);
        let request = format!("GET /metrics HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}

#[test]
fn tls_of_both_versions_and_nothing_else() {
    let own = Certificate::new("localhost");
    let folder = folder(std::slice::from_ref(&own), "  min_version: TLS12\n");
    let server = secure(&folder);
    assert!(server.url().starts_with("https://"));
    for only in [&ONLY_12, &ONLY_13] {
        let scraper = Scraper {
            only,
            ..Scraper::new(&own)
        };
        let answer = scraper.get(&server, "").unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }
    let stranger = Certificate::new("localhost");
    assert!(Scraper::new(&stranger).get(&server, "").is_err());
    assert!(!fetch(&server, "/metrics", "*/*").contains("tlsprof_"));
    server.stop();
}

#[test]
fn a_version_below_the_minimum_is_refused() {
    let own = Certificate::new("localhost");
    let folder = folder(std::slice::from_ref(&own), "  min_version: TLS13\n");
    let server = secure(&folder);
    let old = Scraper {
        only: &ONLY_12,
        ..Scraper::new(&own)
    };
    assert!(old.get(&server, "").is_err());
    assert!(Scraper::new(&own).get(&server, "").is_ok());
    server.stop();
}

#[test]
fn clients_show_a_certificate_where_one_is_asked_for() {
    let names = ["localhost", "scraper", "scraper", "other"];
    let certificates = names.map(Certificate::new);
    let more = "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.pem\n  \
                client_allowed_sans: [scraper]\n";
    let folder = folder(&certificates, more);
    let [own, known, stranger, other] = &certificates;
    let both = format!("{}{}", known.cert, other.cert);
    fs::write(folder.path().join("ca.pem"), both).unwrap();
    let server = secure(&folder);
    for (shows, admitted) in [
        (None, false),
        (Some(known), true),
        (Some(stranger), false),
        // Signed by the right authority, but not of that name.
        (Some(other), false),
    ] {
        let scraper = Scraper {
            shows,
            ..Scraper::new(own)
        };
        assert_eq!(scraper.get(&server, "").is_ok(), admitted);
    }
    server.stop();
}

#[test]
fn passwords_are_asked_for_on_every_path_but_those_of_health() {
    let hash = bcrypt::hash("secret", 4).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("web.yml");
    let headers = "http_server_config:\n  headers:\n    X-Frame-Options: deny\n";
    fs::write(&path, format!("basic_auth_users:\n  al: {hash}\n{headers}")).unwrap();
    let server = start(Access::from_file(&path).unwrap(), BOUNDS);
    assert!(server.url().starts_with("http://"));
    for (path, status) in [("/-/healthy", 200), ("/-/ready", 503)] {
        let answer = fetch(&server, path, "*/*");
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{path}: {answer}");
    }
    for path in ["/", "/metrics", "/-/", "/-/ready/", "//-/ready", "/nothing"] {
        let answer = fetch(&server, path, "*/*");
        assert!(answer.starts_with("HTTP/1.1 401 "), "{path}: {answer}");
        assert!(answer.contains("www-authenticate: Basic realm=\"tlsprof\""));
        assert!(answer.contains("x-frame-options: deny"));
        assert!(!answer.contains("tlsprof_"));
    }
    // al:secret, al:Secret, bo:secret
    for (credentials, status) in [
        ("YWw6c2VjcmV0", "200"),
        ("YWw6U2VjcmV0", "401"),
        ("Ym86c2VjcmV0", "401"),
    ] {
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {credentials}\r\n\r\n"
        );
        let answer = exchange(&server, request.as_bytes());
        let answer = String::from_utf8_lossy(&answer);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        assert!(answer.contains("x-frame-options: deny"));
    }
    server.stop();
}

#[test]
fn new_connections_see_the_new_certificate() {
    let [old, new] = ["localhost", "localhost"].map(Certificate::new);
    let folder = folder(std::slice::from_ref(&old), "");
    let server = secure(&folder);
    assert!(Scraper::new(&old).get(&server, "").is_ok());
    new.write(folder.path(), "0");
    assert!(Scraper::new(&new).get(&server, "").is_ok());
    assert!(Scraper::new(&old).get(&server, "").is_err());
    server.stop();
}

#[test]
fn nobody_is_let_in_while_the_files_are_wrong() {
    let own = Certificate::new("localhost");
    let folder = folder(std::slice::from_ref(&own), "");
    let path = folder.path().join("web.yml");
    let right = fs::read_to_string(&path).unwrap();
    let server = secure(&folder);
    for wrong in [
        "tls_server_config:\n  cert: 1\n",
        "users: {}\n",
        "a: [",
        "\0",
    ] {
        fs::write(&path, wrong).unwrap();
        assert!(Scraper::new(&own).get(&server, "").is_err(), "{wrong}");
        assert_eq!(fetch(&server, "/metrics", "*/*"), "", "{wrong}");
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(fetch(&server, "/metrics", "*/*"), "");
    fs::write(&path, right).unwrap();
    assert!(Scraper::new(&own).get(&server, "").is_ok());
    server.stop();
}
