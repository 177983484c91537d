//! Bytes before TLS: the PROXY protocol, and protocols that switch to TLS.

mod plain;

use super::Direction;
use super::records::{RECORD_HEADER, content, header};

/// Bytes that are looked at in one direction for the beginning of TLS. A PROXY
/// header is at most 216 bytes without extensions; a mail server's greeting and
/// its list of capabilities are a few hundred.
const LOOK_AHEAD: usize = 4096;

/// A protocol that switches to TLS on the client's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Upgrade {
    /// SMTP or LMTP, STARTTLS (RFC 3207).
    Smtp,
    /// FTP, AUTH TLS (RFC 4217).
    Ftp,
    /// IMAP, STARTTLS (RFC 9051, 6.2.1).
    Imap,
    /// POP3, STLS (RFC 2595).
    Pop3,
    /// LDAP, extended operation StartTLS (RFC 4511, 4.14).
    Ldap,
    /// PostgreSQL, SSLRequest.
    Postgresql,
    /// MySQL and MariaDB, SSLRequest.
    Mysql,
}

impl Upgrade {
    /// The value of the metric label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Smtp => "smtp",
            Self::Ftp => "ftp",
            Self::Imap => "imap",
            Self::Pop3 => "pop3",
            Self::Ldap => "ldap",
            Self::Postgresql => "postgresql",
            Self::Mysql => "mysql",
        }
    }
}

/// What came before TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// The client's first bytes were a PROXY protocol header, version 1 or 2.
    pub proxy_protocol: bool,
    /// The connection began as this protocol.
    pub upgrade: Option<Upgrade>,
}

/// What a [`Prelude`] makes of the bytes so far.
#[derive(Debug)]
pub(super) enum Read {
    /// It cannot tell yet.
    More,
    /// TLS began earlier: these bytes are TLS.
    Tls,
    /// TLS begins here, with these bytes that were held back.
    Began(Vec<u8>),
    /// This is TLS, but not its first record.
    Underway,
    /// This is not TLS, nor will it be.
    NotTls,
}

/// One direction until TLS begins.
#[derive(Debug, Default)]
pub(super) struct Prelude {
    /// Bytes of which it is not known yet what they are.
    held: Vec<u8>,
    /// Bytes of other protocols before them.
    passed: usize,
    /// TLS has begun.
    over: bool,
}

/// What the bytes at hand are.
enum Step {
    More,
    /// So many bytes of another protocol.
    Pass(usize),
    Tls,
    Underway,
    NotTls,
}

impl Prelude {
    /// At most so many further bytes are of use; None once TLS has begun.
    pub(super) fn useful(&self) -> Option<usize> {
        let seen = self.passed.saturating_add(self.held.len());
        (!self.over).then(|| LOOK_AHEAD.saturating_sub(seen))
    }

    pub(super) fn read(
        &mut self,
        direction: Direction,
        bytes: &[u8],
        opening: &mut Opening,
    ) -> Read {
        if self.over {
            return Read::Tls;
        }
        self.held.extend_from_slice(bytes);
        loop {
            match self.step(direction, opening) {
                Step::Pass(count) if count <= self.held.len() => {
                    self.held.drain(..count);
                    self.passed = self.passed.saturating_add(count);
                }
                Step::Pass(_) | Step::More => break,
                Step::Tls => {
                    self.over = true;
                    return Read::Began(std::mem::take(&mut self.held));
                }
                Step::Underway => return Read::Underway,
                Step::NotTls => return Read::NotTls,
            }
        }
        if self.useful() == Some(0) {
            return Read::NotTls;
        }
        Read::More
    }

    fn step(&self, direction: Direction, opening: &mut Opening) -> Step {
        // No room for a record's header. The bound is the same whether bytes
        // come one by one or at once.
        if self.passed > LOOK_AHEAD - RECORD_HEADER {
            return Step::NotTls;
        }
        if self.held.is_empty() {
            return Step::More;
        }
        match tls(direction, &self.held) {
            Step::NotTls => plain::step(direction, &self.held, opening),
            step => step,
        }
    }
}

/// Whether these are the first bytes of TLS. A server may begin with an alert.
fn tls(direction: Direction, held: &[u8]) -> Step {
    match *held {
        [kind, ..] if !(content::CHANGE_CIPHER_SPEC..=content::HEARTBEAT).contains(&kind) => {
            Step::NotTls
        }
        [_, major, ..] if major != 3 => Step::NotTls,
        [_, _, minor, ..] if minor > 4 => Step::NotTls,
        _ => match (
            held.first_chunk::<RECORD_HEADER>()
                .map(|bytes| header(bytes)),
            direction,
        ) {
            (None, _) => Step::More,
            (Some(None), _) => Step::NotTls,
            (Some(Some((content::HANDSHAKE, _))), _)
            | (Some(Some((content::ALERT, _))), Direction::FromServer) => Step::Tls,
            _ => Step::Underway,
        },
    }
}
