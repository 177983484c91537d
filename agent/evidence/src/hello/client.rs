//! What the client says: its offer, and the messages of its second flight.

use tls_parser::{TlsExtensionType as Type, parse_tls_handshake_client_hello};

use super::codes::{CipherSuite, Group, SignatureScheme, Version, is_grease, protocol};
use super::cursor::{Cursor, numbers};
use super::extensions::extensions;
use super::facts::{Facts, Seen, keyed_hash};
use super::offer::{LISTED, Offer};
use super::records::{Message, message};
use super::server::signature;
use super::ticket::Ticket;
use super::types::GaveUp;

/// Extensions by which a server may choose a certificate: `server_name`,
/// `signature_algorithms`, ALPN, `certificate_authorities`,
/// `signature_algorithms_cert`.
const CHOOSE_CERTIFICATE: [u16; 5] = [0, 13, 16, 47, 50];

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

/// Each once, though a client may say a thing twice.
fn listed<T: PartialEq>(bytes: &[u8], code: impl Fn(u16) -> T) -> Vec<T> {
    let known = numbers(bytes).filter(|number| !is_grease(*number));
    let mut list = Vec::with_capacity((bytes.len() / 2).min(LISTED));
    for one in known.take(LISTED).map(code) {
        if !list.contains(&one) {
            list.push(one);
        }
    }
    list
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_says_twice_is_listed_once() {
        let said = [0, 29, 0, 23, 0x1a, 0x1a, 0, 29];
        assert_eq!(listed(&said, Group), [Group::X25519, Group::SECP256R1]);
    }
}
