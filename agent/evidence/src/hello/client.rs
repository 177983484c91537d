//! What the client says: its offer, and the messages of its second flight.

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::LazyLock;

use tls_parser::{
    TlsExtension, TlsExtensionType as Type, parse_tls_extension_unknown,
    parse_tls_handshake_client_hello,
};

use super::codes::{CipherSuite, Group, SignatureScheme, Version, is_grease, protocol};
use super::cursor::{Cursor, numbers};
use super::facts::Seen;
use super::records::{Message, message};
use super::server::signature;
use super::session::Ticket;
use super::{Facts, GaveUp};

/// Entries that are kept of one list of an offer. OpenSSL's longest list of
/// suites has 180.
pub const LISTED: usize = 200;

/// What clients send: OpenSSL's 12, browsers' 16 to 18.
const USUAL_EXTENSIONS: usize = 18;

/// Extensions by which a server may choose a certificate: `server_name`,
/// `signature_algorithms`, ALPN, `certificate_authorities`,
/// `signature_algorithms_cert`.
const CHOOSE_CERTIFICATE: [u16; 5] = [0, 13, 16, 47, 50];

/// A ClientHello, without anything that names a host, a user or a session.
/// Lists are in the client's order, without GREASE (RFC 8701), and hold at
/// most [`LISTED`] entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Versions: `supported_versions`, or else the one of the hello.
    pub versions: Vec<Version>,
    /// Cipher suites, without signalling values.
    pub ciphers: Vec<CipherSuite>,
    /// Key exchange groups.
    pub groups: Vec<Group>,
    /// Groups for which the client has sent a key share (TLS 1.3).
    pub key_shares: Vec<Group>,
    /// Signature algorithms.
    pub signatures: Vec<SignatureScheme>,
    /// Application protocols (ALPN): well-known names, else `other`.
    pub protocols: Vec<&'static str>,
    /// It names the host that it wants. The name itself is never kept.
    pub server_name: bool,
    /// Its session id is not empty. It may stand for no session: see
    /// [`super::Offered::SessionId`].
    pub session_id: bool,
    /// It can take a ticket (RFC 5077).
    pub ticket_support: bool,
    /// It sends a ticket (RFC 5077).
    pub ticket: bool,
    /// It sends pre-shared keys (TLS 1.3): earlier sessions, or external keys.
    pub psk: bool,
    /// It sends early data (TLS 1.3).
    pub early_data: bool,
}

impl Offer {
    /// Offers TLS 1.3.
    pub fn has_13(&self) -> bool {
        self.versions.iter().any(|version| version.is_13())
    }

    /// Accepts a certificate with an ECDSA key on P-256. In TLS 1.3 its signature
    /// algorithm says so; before, a cipher suite and the curve must be offered too
    /// (RFC 8422, 5.1).
    pub fn accepts_ecdsa_p256(&self, tls13: bool) -> bool {
        let before = || {
            self.groups.contains(&Group::SECP256R1)
                && self.ciphers.iter().any(|suite| suite.is_ecdhe_ecdsa())
        };
        self.signatures.contains(&SignatureScheme::ECDSA_P256) && (tls13 || before())
    }

    /// Offers a group that withstands a quantum computer.
    pub fn post_quantum(&self) -> bool {
        self.groups.iter().any(|group| group.is_post_quantum())
    }
}

/// Notes a message from the client.
///
/// # Errors
/// [`GaveUp::Underway`] if the first message is no hello,
/// [`GaveUp::Malformed`] if the hello cannot be read.
pub(super) fn note(facts: &mut Facts, message: &Message) -> Result<(), GaveUp> {
    match (&facts.offer, message.kind) {
        (None, message::CLIENT_HELLO) => {
            let (offer, seen) = hello(&message.body).ok_or(GaveUp::Malformed)?;
            facts.offer = Some(offer);
            // What the server says may have been read before.
            facts.seen = Seen {
                certificate_request: seen.certificate_request,
                offered_session: seen.offered_session,
                offered_ticket: seen.offered_ticket,
                ..std::mem::take(&mut facts.seen)
            };
        }
        (None, _) => return Err(GaveUp::Underway),
        (_, message::CLIENT_KEY_EXCHANGE) => {
            facts.seen.client_key_exchange = Some(message.length);
        }
        (_, message::CERTIFICATE_VERIFY) => {
            facts.client_signature = facts
                .choice
                .as_ref()
                .and_then(|choice| signature(&mut Cursor(&message.body), choice.version, ""));
        }
        // A second hello after a HelloRetryRequest offers nothing new.
        _ => {}
    }
    Ok(())
}

/// The offer, and what is concluded from or compared.
fn hello(body: &[u8]) -> Option<(Offer, Seen)> {
    let (_, hello) = parse_tls_handshake_client_hello(body).ok()?;
    let session_id = hello.session_id.unwrap_or_default().to_vec();
    let suites = hello.ciphers.iter().map(|suite| CipherSuite(suite.0));
    let known = suites.filter(|suite| !is_grease(suite.0) && !suite.is_signal());
    let mut offer = Offer {
        versions: vec![Version(hello.version.0)],
        ciphers: kept(hello.ciphers.len(), known),
        session_id: !session_id.is_empty(),
        ..Offer::default()
    };
    let mut seen = Seen {
        offered_session: session_id,
        ..Seen::default()
    };
    for (kind, content) in extensions(hello.ext.unwrap_or_default())? {
        extension(&mut offer, kind, content)?;
        match kind {
            Type::SessionTicketTLS if !offer.psk => seen.offered_ticket = Ticket::of(content),
            Type::PreSharedKey => {
                seen.offered_ticket = first_identity(content).unwrap_or_default();
            }
            _ => {}
        }
        if CHOOSE_CERTIFICATE.contains(&kind.0) {
            // Whatever their order, which some clients shuffle.
            seen.certificate_request ^= keyed_hash(&(kind.0, content));
        }
    }
    Some((offer, seen))
}

/// A hash with a key that is random for each run and never leaves it.
pub(super) fn keyed_hash(of: &impl Hash) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEY.hash_one(of)
}

/// Of the pre-shared keys (RFC 8446, 4.2.11).
fn first_identity(content: &[u8]) -> Option<Ticket> {
    let identities = Cursor(content).vector16()?;
    Some(Ticket::of(Cursor(identities).vector16()?))
}

fn extension(offer: &mut Offer, kind: Type, content: &[u8]) -> Option<()> {
    let mut content = Cursor(content);
    match kind {
        Type::ServerName => offer.server_name = true,
        Type::SupportedVersions => offer.versions = listed(content.vector8()?, Version),
        Type::SupportedGroups => offer.groups = listed(content.vector16()?, Group),
        Type::SignatureAlgorithms => {
            offer.signatures = listed(content.vector16()?, SignatureScheme);
        }
        Type::KeyShare => offer.key_shares = key_shares(content.vector16()?)?,
        Type::ApplicationLayerProtocolNegotiation => {
            offer.protocols = protocols(content.vector16()?)?;
        }
        Type::SessionTicketTLS => {
            offer.ticket_support = true;
            offer.ticket = !content.0.is_empty();
        }
        Type::PreSharedKey => offer.psk = true,
        Type::EarlyData => offer.early_data = true,
        _ => {}
    }
    Some(())
}

/// Types and contents of the extensions of a hello; None if they do not fill
/// `bytes`.
pub(super) fn extensions(mut bytes: &[u8]) -> Option<Vec<(Type, &[u8])>> {
    let mut extensions = Vec::with_capacity(USUAL_EXTENSIONS);
    while !bytes.is_empty() {
        let (rest, extension) = parse_tls_extension_unknown(bytes).ok()?;
        if let TlsExtension::Unknown(kind, content) = extension {
            extensions.push((kind, content));
        }
        bytes = rest;
    }
    Some(extensions)
}

fn listed<T>(bytes: &[u8], code: impl Fn(u16) -> T) -> Vec<T> {
    let known = numbers(bytes).filter(|number| !is_grease(*number));
    kept(bytes.len() / 2, known.map(code))
}

/// The first [`LISTED`] of at most so many; in one piece of memory.
fn kept<T>(most: usize, items: impl Iterator<Item = T>) -> Vec<T> {
    let mut list = Vec::with_capacity(most.min(LISTED));
    list.extend(items.take(LISTED));
    list
}

fn key_shares(bytes: &[u8]) -> Option<Vec<Group>> {
    let mut rest = Cursor(bytes);
    let mut groups = Vec::new();
    while !rest.0.is_empty() && groups.len() < LISTED {
        let group = rest.u16()?;
        rest.vector16()?;
        if !is_grease(group) {
            groups.push(Group(group));
        }
    }
    Some(groups)
}

fn protocols(bytes: &[u8]) -> Option<Vec<&'static str>> {
    let mut rest = Cursor(bytes);
    let mut names = Vec::new();
    while !rest.0.is_empty() && names.len() < LISTED {
        let name = rest.vector8()?;
        if !is_grease_name(name) {
            names.push(protocol(name));
        }
    }
    Some(names)
}

/// A name of two GREASE bytes (RFC 8701, 2).
fn is_grease_name(name: &[u8]) -> bool {
    <[u8; 2]>::try_from(name).is_ok_and(|bytes| is_grease(u16::from_be_bytes(bytes)))
}
