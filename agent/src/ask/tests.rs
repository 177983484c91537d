#![allow(clippy::unwrap_used, reason = "a failed test should stop")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::client::{Failure, Offer, Told};
use super::*;

/// A certificate and its key, made by openssl.
pub(super) struct Identity {
    /// X.509, DER.
    pub(crate) certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Identity {
    pub(crate) const RSA_2048: [&'static str; 2] = ["-newkey", "rsa:2048"];
    pub(crate) const P256: [&'static str; 4] = Self::ec("P-256");

    pub(crate) const fn ec(curve: &'static str) -> [&'static str; 4] {
        // `group` is taken by all releases of OpenSSL 3.
        let group = match curve.as_bytes() {
            b"P-256" => "group:P-256",
            b"P-384" => "group:P-384",
            b"P-521" => "group:P-521",
            _ => "group:secp256k1",
        };
        ["-newkey", "ec", "-pkeyopt", group]
    }

    pub(crate) fn make(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = ["certificate", "key"].map(|name| folder.path().join(name));
        let openssl = |command: &mut Command| {
            let done = command.output().unwrap();
            assert!(
                done.status.success(),
                "{}",
                String::from_utf8_lossy(&done.stderr)
            );
            done.stdout
        };
        openssl(
            Command::new("openssl")
                .args([
                    "req", "-x509", "-noenc", "-subj", "/CN=a", "-outform", "DER",
                ])
                .args(options)
                .arg("-out")
                .arg(&certificate)
                .arg("-keyout")
                .arg(&key),
        );
        let mut pkcs8 = Command::new("openssl");
        pkcs8.args(["pkcs8", "-topk8", "-nocrypt", "-outform", "DER", "-in"]);
        Self {
            certificate: std::fs::read(certificate).unwrap(),
            key: openssl(pkcs8.arg(&key)),
        }
    }
}

/// A server for one connection at a time, and its address.
fn serve(work: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || listener.incoming().flatten().for_each(work));
    address
}

/// A TLS 1.3 server that chooses among its certificates by what the client can
/// verify, and wants nothing but to read until the end.
#[derive(Debug)]
struct Chooser(Vec<Arc<CertifiedKey>>);

impl rustls::server::ResolvesServerCert for Chooser {
    fn resolve(&self, hello: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        assert_eq!(hello.server_name(), None);
        let usable =
            |key: &&Arc<CertifiedKey>| key.key.choose_scheme(hello.signature_schemes()).is_some();
        self.0.iter().find(usable).cloned()
    }
}

fn serve_tls(identities: &[Identity], chain: &[Identity]) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let keys = identities.iter().map(|identity| {
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(identity.key.clone()));
        let key = provider.key_provider.load_private_key(key).unwrap();
        let certificates = std::iter::once(identity).chain(chain);
        let certificates =
            certificates.map(|identity| CertificateDer::from(identity.certificate.clone()));
        Arc::new(CertifiedKey::new(certificates.collect(), key))
    });
    let chooser = Chooser(keys.collect());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(chooser));
    let config = Arc::new(config);
    serve(move |stream| {
        let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut data = Vec::new();
        let ended = StreamOwned::new(tls, stream).read_to_end(&mut data);
        // Nothing was sent, and a handshake that was completed was closed properly.
        assert!(data.is_empty());
        drop(ended);
    })
}

fn look(at: SocketAddr, offer: Offer) -> Result<&'static str, Failure> {
    let Told { key, excluded } = client::ask(at, offer, &OwnConnections::default());
    assert!(excluded);
    key
}

fn find(at: SocketAddr) -> Finding {
    conclude(look(at, Offer::Rsa), look(at, Offer::Other))
}

fn ask_this_process(port: u16) -> Answer {
    let question = Question {
        number: 7,
        port,
        processes: vec![std::process::id()],
    };
    answer(&question, &ProcRoot::default(), &OwnConnections::default())
}

#[test]
fn a_server_with_one_certificate_is_understood() {
    for (options, kind) in [
        (&Identity::RSA_2048[..], "rsa_2048"),
        (&Identity::P256, "ecdsa_p256"),
        (&Identity::ec("P-384"), "ecdsa_p384"),
        (&["-newkey", "ed25519"], "ed25519"),
    ] {
        let server = serve_tls(&[Identity::make(options)], &[]);
        let answer = ask_this_process(server.port());
        assert_eq!(answer.finding, Finding::Key(kind));
        assert_eq!(
            (answer.number, answer.connections, answer.counted),
            (7, 2, 0)
        );
    }
}

#[test]
fn two_certificates_are_found() {
    let both = [&Identity::RSA_2048[..], &Identity::P256].map(Identity::make);
    let found = Finding::Ambiguous(["ecdsa_p256", "rsa_2048"].into());
    assert_eq!(find(serve_tls(&both, &[])), found);
}

#[test]
fn a_thread_asks() {
    let server = serve_tls(&[Identity::make(&Identity::P256)], &[]);
    let asker = Asker::start(ProcRoot::default()).unwrap();
    assert_eq!(asker.answer(), Err(TryRecvError::Empty));
    assert!(asker.ask(Question {
        number: 1,
        port: server.port(),
        processes: vec![std::process::id()],
    }));
    let answer = asker.answers.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(answer.finding, Finding::Key("ecdsa_p256"));
}

#[test]
fn where_nobody_listens_nobody_is_asked() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let answer = ask_this_process(port);
    assert!(matches!(answer.finding, Finding::Nothing(_)));
    assert_eq!(answer.connections, 0);
}

#[test]
fn listeners_on_all_addresses_are_asked_on_loopback() {
    assert_eq!(reachable([0, 0, 0, 0].into()), IpAddr::from([127, 0, 0, 1]));
    assert!(reachable(Ipv6Addr::UNSPECIFIED.into()).is_loopback());
    assert_eq!(reachable([10, 0, 0, 1].into()), IpAddr::from([10, 0, 0, 1]));
}

#[test]
fn a_huge_certificate_is_read_and_a_huge_chain_is_not() {
    let comment = format!("nsComment={}", "x".repeat(40_000));
    let huge = || Identity::make(&[&Identity::P256[..], &["-addext", &comment]].concat());
    let server = serve_tls(&[huge()], &[]);
    assert_eq!(look(server, Offer::Other).unwrap(), "ecdsa_p256");
    let chain: Vec<Identity> = std::iter::repeat_with(huge).take(9).collect();
    let server = serve_tls(&[huge()], &chain);
    assert!(matches!(look(server, Offer::Other), Err(Failure::Tls(_))));
}

#[test]
fn a_server_that_closes_at_once_has_said_nothing() {
    let failure = look(serve(drop), Offer::Rsa).unwrap_err();
    assert!(failure.is_refusal(), "{failure:?}");
    assert!(matches!(find(serve(drop)), Finding::Nothing(_)));
}

#[test]
fn garbage_is_an_error() {
    for garbage in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        &[0; 100],
        &[0xff; 70_000],
        b"\x16\x03\x03\x40\x00\x02\xff\xff\xff",
        b"\x15\x03\x03\x00\x02\x02\x28",
    ] {
        let server = serve(move |mut stream| {
            // The client may have gone.
            let _ = stream.write_all(garbage);
            let _ = stream.read(&mut [0; 4096]);
        });
        assert!(look(server, Offer::Rsa).is_err());
    }
}

#[test]
fn an_endless_answer_is_cut() {
    // Records of a message that is never complete, and ones that mean nothing.
    let fragment = [&[22, 3, 3, 0, 255, 2, 0, 255, 0][..], &[0; 251]].concat();
    let nothing = vec![20, 3, 3, 0, 1, 1];
    for record in [fragment, nothing] {
        let server = serve(move |mut stream| while stream.write_all(&record).is_ok() {});
        let failure = look(server, Offer::Rsa).unwrap_err();
        assert!(!matches!(failure, Failure::TimedOut), "{failure:?}");
    }
}

#[test]
fn a_slow_server_is_left() {
    // Alive, and never done: the header of a record, byte by byte, and its body.
    let server = serve(|mut stream| {
        let record = [22, 3, 3, 64, 0, 2, 0, 63, 252];
        for byte in record.into_iter().chain(std::iter::repeat(0)) {
            if stream.write_all(&[byte]).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
    });
    assert!(matches!(look(server, Offer::Rsa), Err(Failure::TimedOut)));
    let silent = serve(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    assert!(matches!(look(silent, Offer::Rsa), Err(Failure::TimedOut)));
}
