//! How a connection began: what came before TLS, which the kernel side goes through
//! and does not hand out, and its first record.

use super::Direction;
use super::records::{RECORD_HEADER, content, header};
use tlsprof_common::labelled;

labelled! {
    /// A protocol that switches to TLS on the client's word.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Upgrade {
        /// SMTP or LMTP, STARTTLS (RFC 3207).
        Smtp = "smtp",
        /// FTP, AUTH TLS (RFC 4217).
        Ftp = "ftp",
        /// IMAP, STARTTLS (RFC 9051, 6.2.1).
        Imap = "imap",
        /// POP3, STLS (RFC 2595).
        Pop3 = "pop3",
        /// LDAP, extended operation StartTLS (RFC 4511, 4.14).
        Ldap = "ldap",
        /// PostgreSQL, SSLRequest.
        Postgresql = "postgresql",
        /// MySQL and MariaDB, SSLRequest.
        Mysql = "mysql",
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

/// What a [`Beginning`] makes of the bytes so far.
#[derive(Debug)]
pub(super) enum Read {
    /// Undecided.
    More,
    /// TLS began earlier: these bytes are TLS.
    Tls,
    /// TLS begins here, with these bytes that were held back.
    Began(Vec<u8>),
    /// This is TLS, but not its first record.
    Underway,
    /// This is not TLS.
    NotTls,
}

/// One direction until the header of its first record is there.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    held: Vec<u8>,
    over: bool,
}

impl Beginning {
    pub(super) fn read(&mut self, direction: Direction, bytes: &[u8]) -> Read {
        if self.over {
            return Read::Tls;
        }
        self.held.extend_from_slice(bytes);
        let read = first_record(direction, &self.held);
        if let Read::Tls = read {
            self.over = true;
            return Read::Began(std::mem::take(&mut self.held));
        }
        read
    }
}

/// Whether these are the first bytes of TLS. A server may begin with an alert.
fn first_record(direction: Direction, held: &[u8]) -> Read {
    match *held {
        [kind, ..] if !(content::CHANGE_CIPHER_SPEC..=content::HEARTBEAT).contains(&kind) => {
            Read::NotTls
        }
        [_, major, ..] if major != 3 => Read::NotTls,
        [_, _, minor, ..] if minor > 4 => Read::NotTls,
        _ => match (
            held.first_chunk::<RECORD_HEADER>()
                .map(|bytes| header(bytes)),
            direction,
        ) {
            (None, _) => Read::More,
            (Some(None), _) => Read::NotTls,
            (Some(Some((content::HANDSHAKE, _))), _)
            | (Some(Some((content::ALERT, _))), Direction::FromServer) => Read::Tls,
            _ => Read::Underway,
        },
    }
}
