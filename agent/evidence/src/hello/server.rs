//! What the server says: its choice, its key exchange, its signature.

use tls_parser::{
    ECParametersContent, TlsExtensionType as Type, TlsServerHelloContents, parse_dh_params,
    parse_ecdh_params, parse_tls_handshake_server_hello,
};

use super::chain::Chain;
use super::choice::{Choice, KeyExchange, Signature};
use super::codes::{CipherSuite, Group, SignatureScheme, Version, protocol};
use super::cursor::Cursor;
use super::extensions::extensions;
use super::facts::Facts;
use super::records::{Message, message};
use super::ticket::Ticket;
use super::types::GaveUp;

/// The random of a ServerHello that is a HelloRetryRequest (RFC 8446, 4.1.3).
const RETRY: [u8; 32] = [
    0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91,
    0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C,
];

/// First bytes of the primes of RFC 7919, in which they differ from the older
/// ones of RFC 2409 and RFC 3526.
const FFDHE: [u8; 16] = [
    0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xAD, 0xF8, 0x54, 0x58, 0xA2, 0xBB, 0x4A, 0x9A,
];

/// Notes a message from the server.
///
/// # Errors
/// [`GaveUp::Underway`] if the first message is no hello,
/// [`GaveUp::Malformed`] if one cannot be read.
pub(super) fn note(facts: &mut Facts, message: &Message) -> Result<(), GaveUp> {
    /// Asks for a new handshake; without meaning during one.
    const HELLO_REQUEST: u8 = 0;
    match (&mut facts.choice, message.kind) {
        (_, HELLO_REQUEST) => {}
        (None, message::SERVER_HELLO) => hello(facts, &message.body).ok_or(GaveUp::Malformed)?,
        (None, _) => return Err(GaveUp::Underway),
        (Some(_), message::CERTIFICATE) => {
            facts.seen.full_flight = true;
            facts.server_chain = Some(Chain {
                length: message.length,
                certificates: None,
            });
        }
        (Some(_), message::SERVER_HELLO_DONE) => {
            facts.seen.full_flight = true;
            facts.seen.server_flight_ended = true;
        }
        (Some(_), message::NEW_SESSION_TICKET) => {
            // Lifetime and ticket (RFC 5077, 3.3).
            let mut body = Cursor(&message.body);
            let ticket = body.take(4).and_then(|_| body.vector16());
            facts.seen.issued_ticket = Ticket::of(ticket.unwrap_or_default());
        }
        (Some(choice), message::SERVER_KEY_EXCHANGE) => {
            facts.seen.full_flight = true;
            facts.server_signature = key_exchange(choice, &message.body);
        }
        _ => {}
    }
    Ok(())
}

fn hello(facts: &mut Facts, body: &[u8]) -> Option<()> {
    let (_, hello) = parse_tls_handshake_server_hello(body).ok()?;
    let extensions = extensions(hello.ext.unwrap_or_default())?;
    let mut choice = chosen(&hello, &facts.seen.offered_session);
    let retry = hello.random == RETRY;
    for (kind, content) in extensions {
        extension(&mut choice, kind, Cursor(content), retry)?;
    }
    if retry {
        facts.retry = Some(match choice.key_exchange {
            KeyExchange::Group(group) => Some(group),
            _ => None,
        });
        return Some(());
    }
    let issued = hello.session_id.unwrap_or_default();
    if choice.version.is_13() {
        if choice.psk && choice.key_exchange == KeyExchange::Unknown {
            choice.key_exchange = KeyExchange::None;
        }
    } else if !choice.session_id_echoed {
        facts.seen.issued_session = issued.to_vec();
    }
    facts.choice = Some(choice);
    Some(())
}

fn chosen(hello: &TlsServerHelloContents<'_>, offered: &[u8]) -> Choice {
    let session_id = hello.session_id.unwrap_or_default();
    let echoed = !session_id.is_empty() && session_id == offered;
    Choice {
        version: Version(hello.version.0),
        cipher: CipherSuite(hello.cipher.0),
        protocol: None,
        psk: false,
        session_id_echoed: echoed,
        key_exchange: KeyExchange::Unknown,
    }
}

fn extension(choice: &mut Choice, kind: Type, mut content: Cursor<'_>, retry: bool) -> Option<()> {
    match kind {
        Type::SupportedVersions => choice.version = Version(content.u16()?),
        Type::PreSharedKey => choice.psk = true,
        Type::KeyShare => {
            choice.key_exchange = KeyExchange::Group(Group(content.u16()?));
            if !retry {
                content.vector16()?;
            }
        }
        Type::ApplicationLayerProtocolNegotiation => {
            choice.protocol = Some(protocol(Cursor(content.vector16()?).vector8()?));
        }
        _ => {}
    }
    Some(())
}

/// Reads a ServerKeyExchange (RFC 5246, 7.4.3; RFC 8422, 5.4; RFC 5489, 2).
/// What cannot be read leaves the key exchange unknown.
fn key_exchange(choice: &mut Choice, body: &[u8]) -> Option<Signature> {
    let kind = choice.cipher.key_exchange()?;
    let mut body = Cursor(body);
    if kind.ends_with("PSK") {
        body.vector16()?;
    }
    let rest = if kind.starts_with("ECDH") {
        let (rest, params) = parse_ecdh_params(body.0).ok()?;
        choice.key_exchange = match params.curve_params.params_content {
            ECParametersContent::NamedGroup(group) => KeyExchange::Group(Group(group.0)),
            ECParametersContent::ExplicitPrime(_) => KeyExchange::UnnamedCurve,
        };
        rest
    } else if kind.starts_with("DH") {
        let (rest, params) = parse_dh_params(body.0).ok()?;
        choice.key_exchange = dhe(params.dh_p);
        rest
    } else {
        return None;
    };
    if kind.ends_with("anon") || kind.ends_with("PSK") {
        return None;
    }
    signature(&mut Cursor(rest), choice.version, kind)
}

/// DHE by its prime: the groups of RFC 7919 have names.
fn dhe(prime: &[u8]) -> KeyExchange {
    let zeros = prime.iter().take_while(|byte| **byte == 0).count();
    let prime = prime.get(zeros..).unwrap_or_default();
    let bits = prime
        .first()
        .map_or(0, |first| prime.len() * 8 - first.leading_zeros() as usize);
    if !prime.starts_with(&FFDHE) {
        return KeyExchange::Dhe(bits);
    }
    match bits {
        2048 => KeyExchange::Group(Group(256)),
        3072 => KeyExchange::Group(Group(257)),
        4096 => KeyExchange::Group(Group(258)),
        6144 => KeyExchange::Group(Group(259)),
        8192 => KeyExchange::Group(Group(260)),
        _ => KeyExchange::Dhe(bits),
    }
}

/// A signature at the end of a message; before TLS 1.2 only the suite's
/// `authentication` says of which kind it is.
pub(super) fn signature(
    rest: &mut Cursor<'_>,
    version: Version,
    authentication: &str,
) -> Option<Signature> {
    let scheme = if version == Version::TLS12 {
        Some(SignatureScheme(rest.u16()?))
    } else {
        None
    };
    let length = rest.vector16()?.len();
    let rsa = match scheme {
        // RSASSA-PSS, or the pair (hash, rsa) of RFC 5246, 7.4.1.4.1.
        Some(SignatureScheme(code)) => {
            matches!(code, 0x0804..=0x0806 | 0x0809..=0x080b) || code & 0xff == 1
        }
        None => authentication.ends_with("RSA"),
    };
    Some(Signature {
        scheme,
        rsa,
        length,
    })
}
