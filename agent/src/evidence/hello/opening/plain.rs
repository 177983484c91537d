//! The protocols that come before TLS, as far as they must be read to find
//! where TLS begins.

use super::super::Direction;
use super::super::cursor::Cursor;
use super::{Opening, Step, Upgrade};

/// First bytes of a PROXY header, version 1 (HAProxy, proxy-protocol.txt, 2.1).
const PROXY_V1: &[u8] = b"PROXY ";

/// Longest PROXY header, version 1, with its line end.
const PROXY_V1_LIMIT: usize = 107;

/// First bytes of a PROXY header, version 2 (the same, 2.2).
const PROXY_V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Length and code of an SSLRequest (PostgreSQL, Message Formats).
const POSTGRESQL_SSL: &[u8] = &[0, 0, 0, 8, 0x04, 0xD2, 0x16, 0x2F];

/// A GSSENCRequest, which may come before an SSLRequest.
const POSTGRESQL_GSS: &[u8] = &[0, 0, 0, 8, 0x04, 0xD2, 0x16, 0x30];

/// Name of the StartTLS operation (RFC 4511, 4.14.1).
const LDAP_START_TLS: &[u8] = b"1.3.6.1.4.1.1466.20037";

/// Tag of an extended request (RFC 4511, 4.12).
const LDAP_EXTENDED_REQUEST: u8 = 0x77;

/// Longest StartTLS request; it is 31 bytes with the shortest lengths.
const LDAP_REQUEST_LIMIT: usize = 256;

/// Body of MySQL's SSLRequest, and its flag CLIENT_SSL.
const MYSQL_REQUEST: usize = 32;
const MYSQL_CLIENT_SSL: u8 = 0x08;

/// What the first of `held`, which are not TLS, are.
pub(super) fn step(direction: Direction, held: &[u8], opening: &mut Opening) -> Step {
    match (direction, opening.upgrade) {
        (Direction::FromClient, Some(Upgrade::Smtp | Upgrade::Ftp)) => smtp_command(held, opening),
        (_, Some(Upgrade::Smtp | Upgrade::Ftp | Upgrade::Imap | Upgrade::Pop3)) => line(held),
        (Direction::FromClient, None) => client_first(held, opening),
        (Direction::FromServer, None) => server_first(held, opening),
        (Direction::FromClient, Some(Upgrade::Postgresql)) => postgresql_request(held, opening),
        (Direction::FromServer, Some(Upgrade::Postgresql)) => postgresql_answer(held),
        (Direction::FromClient, Some(Upgrade::Mysql)) => mysql_request(held),
        (Direction::FromServer, Some(Upgrade::Ldap)) => ldap_answer(held),
        (Direction::FromServer, Some(Upgrade::Mysql))
        | (Direction::FromClient, Some(Upgrade::Ldap)) => Step::NotTls,
    }
}

fn client_first(held: &[u8], opening: &mut Opening) -> Step {
    [proxy_v1, proxy_v2, postgresql_request, ldap_request]
        .iter()
        .map(|protocol| protocol(held, opening))
        .find(|step| !matches!(step, Step::NotTls))
        .unwrap_or(Step::NotTls)
}

fn server_first(held: &[u8], opening: &mut Opening) -> Step {
    const GREETINGS: [(&[u8], Upgrade); 5] = [
        (b"220 ", Upgrade::Smtp),
        (b"220-", Upgrade::Smtp),
        (b"* OK", Upgrade::Imap),
        (b"* PREAUTH", Upgrade::Imap),
        (b"+OK", Upgrade::Pop3),
    ];
    let mut partial = false;
    for (greeting, upgrade) in GREETINGS {
        match compare(held, greeting) {
            Match::Whole => {
                opening.upgrade = Some(upgrade);
                return line(held);
            }
            Match::Partial => partial = true,
            Match::No => {}
        }
    }
    if partial {
        return Step::More;
    }
    mysql_greeting(held, opening)
}

/// How bytes compare with the beginning of a protocol.
enum Match {
    No,
    /// As far as they go.
    Partial,
    Whole,
}

fn compare(held: &[u8], beginning: &[u8]) -> Match {
    if held.iter().zip(beginning).any(|(have, want)| have != want) {
        Match::No
    } else if held.len() < beginning.len() {
        Match::Partial
    } else {
        Match::Whole
    }
}

/// A line of text. No line begins like a TLS record.
fn line(held: &[u8]) -> Step {
    match held.iter().position(|byte| *byte == b'\n') {
        Some(end) => Step::Pass(end + 1),
        None => Step::More,
    }
}

/// SMTP and FTP greet alike; the command for TLS tells them apart.
fn smtp_command(held: &[u8], opening: &mut Opening) -> Step {
    const AUTH_TLS: &[u8] = b"AUTH TLS";
    if let Some(command) = held.get(..AUTH_TLS.len())
        && command.eq_ignore_ascii_case(AUTH_TLS)
    {
        opening.upgrade = Some(Upgrade::Ftp);
    }
    line(held)
}

fn proxy_v1(held: &[u8], opening: &mut Opening) -> Step {
    match (compare(held, PROXY_V1), line(held)) {
        _ if opening.proxy_protocol => Step::NotTls,
        (Match::No, _) => Step::NotTls,
        (_, Step::Pass(length)) if length <= PROXY_V1_LIMIT => {
            opening.proxy_protocol = true;
            Step::Pass(length)
        }
        (_, Step::More) if held.len() < PROXY_V1_LIMIT => Step::More,
        _ => Step::NotTls,
    }
}

fn proxy_v2(held: &[u8], opening: &mut Opening) -> Step {
    if opening.proxy_protocol {
        return Step::NotTls;
    }
    match compare(held, PROXY_V2) {
        Match::No => return Step::NotTls,
        Match::Partial => return Step::More,
        Match::Whole => {}
    }
    // Version and command, family, length of the rest.
    let mut rest = Cursor(held.get(PROXY_V2.len() + 2..).unwrap_or_default());
    let Some(length) = rest.u16() else {
        return Step::More;
    };
    let whole = PROXY_V2.len() + 4 + usize::from(length);
    if held.len() >= whole {
        opening.proxy_protocol = true;
    }
    Step::Pass(whole)
}

fn postgresql_request(held: &[u8], opening: &mut Opening) -> Step {
    match (compare(held, POSTGRESQL_SSL), compare(held, POSTGRESQL_GSS)) {
        (Match::Whole, _) | (_, Match::Whole) => {
            opening.upgrade = Some(Upgrade::Postgresql);
            Step::Pass(POSTGRESQL_SSL.len())
        }
        (Match::Partial, _) | (_, Match::Partial) => Step::More,
        (Match::No, Match::No) => Step::NotTls,
    }
}

/// `S`: go on with TLS. `N`: no; the client may ask for another thing.
fn postgresql_answer(held: &[u8]) -> Step {
    match held.first() {
        Some(b'S' | b'N') => Step::Pass(1),
        _ => Step::NotTls,
    }
}

/// The length of a BER sequence with its header, and what follows the header;
/// None for "more". A length in a form that LDAP does not use is endless.
fn sequence(held: &[u8]) -> Option<(usize, Cursor<'_>)> {
    let mut rest = Cursor(held);
    rest.u8()?;
    let first = rest.u8()?;
    let length = match first {
        0..=0x7f => usize::from(first),
        0x81..=0x84 => rest
            .take(usize::from(first & 0x0f))?
            .iter()
            .fold(0_usize, |length, byte| length << 8 | usize::from(*byte)),
        _ => usize::MAX,
    };
    let header = held.len() - rest.0.len();
    Some((length.saturating_add(header), rest))
}

/// An LDAP message whose operation is StartTLS: sequence, message id of at most
/// four bytes, then the operation (RFC 4511, 4.1.1).
fn ldap_request(held: &[u8], opening: &mut Opening) -> Step {
    const SEQUENCE: u8 = 0x30;
    const INTEGER: u8 = 0x02;
    if held.first() != Some(&SEQUENCE) {
        return Step::NotTls;
    }
    let Some((length, message)) = sequence(held) else {
        return Step::More;
    };
    let is_start = match *message.0 {
        [tag, ..] if tag != INTEGER => false,
        [_, 1, _, operation, ..]
        | [_, 2, _, _, operation, ..]
        | [_, 3, _, _, _, operation, ..]
        | [_, 4, _, _, _, _, operation, ..] => operation == LDAP_EXTENDED_REQUEST,
        [_, id_length, ..] => (1..=4).contains(&id_length),
        _ => true,
    };
    if length > LDAP_REQUEST_LIMIT || !is_start {
        return Step::NotTls;
    }
    let Some(request) = held.get(..length) else {
        return Step::More;
    };
    let name = |window: &[u8]| window == LDAP_START_TLS;
    if !request.windows(LDAP_START_TLS.len()).any(name) {
        return Step::NotTls;
    }
    opening.upgrade = Some(Upgrade::Ldap);
    Step::Pass(length)
}

fn ldap_answer(held: &[u8]) -> Step {
    match (held.first(), sequence(held)) {
        (Some(0x30), Some((length, _))) => Step::Pass(length),
        (Some(0x30), None) => Step::More,
        _ => Step::NotTls,
    }
}

/// A server's greeting: three bytes of length (little-endian; a few hundred at
/// most), sequence number 0, protocol version 10.
fn mysql_greeting(held: &[u8], opening: &mut Opening) -> Step {
    match *held {
        [low, high, 0, 0, 10, ..] if high < 4 => {
            let whole = 4 + usize::from(u16::from_le_bytes([low, high]));
            if held.len() >= whole {
                opening.upgrade = Some(Upgrade::Mysql);
            }
            Step::Pass(whole)
        }
        [_] | [_, 0..4] | [_, 0..4, 0] | [_, 0..4, 0, 0] => Step::More,
        _ => Step::NotTls,
    }
}

/// The client's first packet, sequence number 1: an SSLRequest if it is of that
/// length and has the flag; else a login without TLS.
fn mysql_request(held: &[u8]) -> Step {
    match *held {
        [32, 0, 0, 1, _, flags, ..] if flags & MYSQL_CLIENT_SSL != 0 => {
            Step::Pass(4 + MYSQL_REQUEST)
        }
        [32] | [32, 0] | [32, 0, 0] | [32, 0, 0, 1] | [32, 0, 0, 1, _] => Step::More,
        _ => Step::NotTls,
    }
}
