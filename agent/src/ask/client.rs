//! One TLS connection that only looks at the server's certificate.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, version};

use super::key::kind_of_key;
use super::own::OwnConnections;

/// How long one connection may take, from the first packet on.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Most bytes that are read. rustls takes no message over 64 KiB, but any number
/// of them.
const MOST_BYTES: usize = 256 * 1024;

/// Which signatures the client claims to verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// Those of RSA keys.
    Rsa,
    /// All but those.
    Other,
}

impl Offer {
    fn schemes(self) -> Vec<SignatureScheme> {
        match self {
            Self::Rsa => vec![
                SignatureScheme::RSA_PSS_SHA256,
                SignatureScheme::RSA_PSS_SHA384,
                SignatureScheme::RSA_PSS_SHA512,
                // Of keys that are for RSASSA-PSS only.
                SignatureScheme::Unknown(0x0809),
                SignatureScheme::Unknown(0x080a),
                SignatureScheme::Unknown(0x080b),
                // Of certificates; not in handshakes of TLS 1.3.
                SignatureScheme::RSA_PKCS1_SHA256,
                SignatureScheme::RSA_PKCS1_SHA384,
                SignatureScheme::RSA_PKCS1_SHA512,
            ],
            Self::Other => vec![
                SignatureScheme::ECDSA_NISTP256_SHA256,
                SignatureScheme::ECDSA_NISTP384_SHA384,
                SignatureScheme::ECDSA_NISTP521_SHA512,
                SignatureScheme::ED25519,
                SignatureScheme::ED448,
            ],
        }
    }
}

/// Why a connection did not show the kind of key.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("tlsprof cannot connect to it: {0}")]
    Connect(io::Error),
    #[error("it did not answer within {} s", TIMEOUT.as_secs())]
    TimedOut,
    #[error("its answer is longer than {MOST_BYTES} bytes")]
    TooLong,
    #[error("it closed the connection")]
    Closed,
    #[error("the connection failed: {0}")]
    Broken(io::Error),
    #[error("its certificate cannot be read")]
    Certificate,
    #[error("the handshake failed: {0}")]
    Tls(rustls::Error),
}

impl Failure {
    /// Whether the server ended the handshake: it has no certificate whose
    /// signature the client would understand.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Closed | Self::Tls(rustls::Error::AlertReceived(_)) => true,
            Self::Broken(error) => error.kind() == io::ErrorKind::ConnectionReset,
            _ => false,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::TimedOut,
            _ => Self::Broken(error),
        }
    }
}

/// What one connection showed.
#[derive(Debug)]
pub(super) struct Told {
    pub key: Result<&'static str, Failure>,
    /// The connection is known as the agent's own, or there was none.
    pub(crate) excluded: bool,
}

/// Connects, makes a handshake and closes. Nothing else is sent.
pub(super) fn ask(to: SocketAddr, offer: Offer, own: &OwnConnections) -> Told {
    let deadline = Instant::now() + TIMEOUT;
    match TcpStream::connect_timeout(&to, TIMEOUT) {
        Ok(stream) => Told {
            excluded: own.note(&stream),
            key: look(stream, offer, deadline),
        },
        Err(error) => Told {
            excluded: true,
            key: Err(match Failure::from(error) {
                Failure::Broken(error) => Failure::Connect(error),
                timeout => timeout,
            }),
        },
    }
}

fn look(stream: TcpStream, offer: Offer, deadline: Instant) -> Result<&'static str, Failure> {
    let looker = Arc::new(Looker {
        offer,
        key: Mutex::new(None),
    });
    let config = config(Arc::clone(&looker)).map_err(Failure::Tls)?;
    // An address is no server name: none is sent.
    let nameless = ServerName::from(to_ip(&stream)?);
    let tls = ClientConnection::new(Arc::new(config), nameless).map_err(Failure::Tls)?;
    let done = Conversation {
        stream,
        tls,
        deadline,
        left: MOST_BYTES,
    }
    .run();
    let key = looker.key.lock().unwrap_or_else(PoisonError::into_inner);
    // A server that wants to know the client gives up after its certificate.
    match (*key, done) {
        (Some(key), _) => key.ok_or(Failure::Certificate),
        (None, Err(failure)) => Err(failure),
        (None, Ok(())) => Err(Failure::Certificate),
    }
}

fn to_ip(stream: &TcpStream) -> Result<std::net::IpAddr, Failure> {
    Ok(stream.peer_addr()?.ip())
}

fn config(looker: Arc<Looker>) -> Result<ClientConfig, rustls::Error> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(looker)
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    Ok(config)
}

/// A handshake over TCP that ends in time.
struct Conversation {
    stream: TcpStream,
    tls: ClientConnection,
    deadline: Instant,
    /// Bytes that may still be read.
    left: usize,
}

impl Conversation {
    fn run(mut self) -> Result<(), Failure> {
        while self.tls.is_handshaking() {
            self.write()?;
            self.read()?;
            if let Err(error) = self.tls.process_new_packets() {
                // The alert that says so; if it cannot be sent, so be it.
                let _ = self.write();
                return Err(Failure::Tls(error));
            }
        }
        self.tls.send_close_notify();
        self.write()
    }

    fn time_left(&self) -> Result<Duration, Failure> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Failure::TimedOut);
        }
        Ok(left)
    }

    fn write(&mut self) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut bytes)?;
        }
        // A few hundred bytes: they fit into what the kernel keeps.
        self.stream.set_write_timeout(Some(self.time_left()?))?;
        Ok(self.stream.write_all(&bytes)?)
    }

    fn read(&mut self) -> Result<(), Failure> {
        let mut bytes = [0; 4096];
        self.stream.set_read_timeout(Some(self.time_left()?))?;
        let read = match self.stream.read(&mut bytes)? {
            0 => return Err(Failure::Closed),
            read => read,
        };
        self.left = self.left.checked_sub(read).ok_or(Failure::TooLong)?;
        let mut fresh = bytes.get(..read).unwrap_or_default();
        while !fresh.is_empty() {
            // It takes nothing once its buffer is full, which is then an error of
            // what it has: no record is that long.
            if self.tls.read_tls(&mut fresh)? == 0 {
                return Err(Failure::TooLong);
            }
            if self.tls.process_new_packets().is_err() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Notes the kind of key, and accepts any certificate and any signature: nothing
/// is sent to the server, nothing that it sends is used, and whether its
/// certificate is valid is not the question. Whoever could answer in its place has
/// its port on this host.
#[derive(Debug)]
struct Looker {
    offer: Offer,
    /// None inside: it is there, and cannot be read.
    key: Mutex<Option<Option<&'static str>>>,
}

impl ServerCertVerifier for Looker {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let mut key = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        *key = Some(kind_of_key(end_entity));
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.offer.schemes()
    }
}
