//! Conclusions from what both sides said.

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::LazyLock;

use super::chain::Chain;
use super::choice::{Choice, KeyExchange, Signature};
use super::codes::{Alert, AlertLevel, Group, Version};
use super::offer::Offer;
use super::opening::Opening;
use super::ticket::{Origin, Ticket};
use super::types::{ALERTS, Direction};
use tlsprof_common::{Resumption, Role, labelled};

/// HTTP/2 over TLS in ALPN (RFC 9113, 3.1).
const HTTP2: &str = "h2";

/// What a connection said in clear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// What came before TLS.
    pub opening: Opening,
    /// The (first) ClientHello.
    pub offer: Option<Offer>,
    /// The ServerHello.
    pub choice: Option<Choice>,
    /// A HelloRetryRequest was seen; the group that it asked for, if any.
    pub retry: Option<Option<Group>>,
    /// The server's certificates (up to TLS 1.2).
    pub server_chain: Option<Chain>,
    /// The server's signature of its key exchange (up to TLS 1.2).
    pub(crate) server_signature: Option<Signature>,
    /// The signature of a client that authenticated itself (up to TLS 1.2).
    pub client_signature: Option<Signature>,
    /// The first alerts in clear, with who sent them.
    pub alerts: Vec<(Direction, AlertLevel, Alert)>,
    /// Where the session came from that the client brought; one connection does not show it,
    /// but by what was seen of others.
    pub origin: Option<Origin>,
    pub(super) seen: Seen,
}

/// Signs from which conclusions are drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// What the client asked for in its certificate extensions, the name of the host
    /// among them: a hash with a key of this run.
    pub certificate_request: u64,
    /// The client's session id, at most 32 bytes.
    pub(crate) offered_session: Vec<u8>,
    /// The server's, where it is another; at most 32 bytes.
    pub(crate) issued_session: Vec<u8>,
    /// The client's ticket, or its first pre-shared key.
    pub(crate) offered_ticket: Ticket,
    /// Up to TLS 1.2: the ticket that the server gave.
    pub(crate) issued_ticket: Ticket,
    /// Up to TLS 1.2: the server sent what it sends in full handshakes only.
    pub(crate) full_flight: bool,
    /// Up to TLS 1.2: the server's flight ended, whatever it held.
    pub(crate) server_flight_ended: bool,
    /// Up to TLS 1.2: the server began to encrypt.
    pub(crate) server_changed_cipher: bool,
    /// Up to TLS 1.2: the client began to encrypt.
    pub(crate) client_changed_cipher: bool,
    /// Length of the ClientKeyExchange in bytes.
    pub(crate) client_key_exchange: Option<usize>,
    /// The session id that was not taken up had been issued by a server.
    pub(crate) refused_known_session: bool,
}

/// By which means a client asked to take up an earlier session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Offered {
    /// It did not.
    Nothing,
    /// By a session id, or not at all: TLS 1.3 clients make one up for
    /// compatibility (RFC 8446, D.4), and Go's client always does. See
    /// [`Facts::refused_session`].
    SessionId,
    /// By a ticket.
    Ticket,
    /// By a pre-shared key. An external key looks the same.
    Psk,
}

impl Offered {
    /// The value of the metric label, as [`Resumption::label`] has it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Nothing => Resumption::None.label(),
            Self::SessionId => Resumption::SessionId.label(),
            Self::Ticket => Resumption::Ticket.label(),
            Self::Psk => Resumption::Psk.label(),
        }
    }
}

labelled! {
    /// What became of the attempt to take up an earlier session.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Attempt {
        /// There was none.
        NotOffered = "not_offered",
        /// The session was resumed.
        Accepted = "accepted",
        /// The server insisted on a full handshake.
        Refused = "refused",
        /// Not seen, or a session id that may stand for nothing was not taken up.
        Unknown = "unknown",
    }
}

impl Facts {
    /// Version label: `TLS1.3`, or `unknown`.
    pub fn version(&self) -> &'static str {
        self.choice
            .as_ref()
            .map_or("unknown", |choice| choice.version.name())
    }

    /// Cipher suite by its registry name, or `unknown`.
    pub fn cipher(&self) -> &'static str {
        self.choice
            .as_ref()
            .map_or("unknown", |choice| choice.cipher.name())
    }

    /// Whether the connection speaks HTTP/2, or may: the client offered it, or its hello was not
    /// read, and in TLS 1.3 the server's choice is encrypted.
    pub fn may_be_http2(&self) -> bool {
        match &self.choice {
            Some(choice) if !choice.version.is_13() => choice.protocol == Some(HTTP2),
            _ => {
                let offer = self.offer.as_ref();
                offer.is_none_or(|offer| offer.protocols.contains(&HTTP2))
            }
        }
    }

    /// How keys were exchanged.
    pub fn key_exchange(&self) -> KeyExchange {
        let Some(choice) = &self.choice else {
            return KeyExchange::Unknown;
        };
        if choice.key_exchange != KeyExchange::Unknown || choice.version.is_13() {
            return choice.key_exchange;
        }
        match (self.resumption(), choice.cipher.key_exchange()) {
            (Resumption::Unknown, _) => KeyExchange::Unknown,
            (Resumption::None, Some("RSA" | "RSA_PSK" | "RSA_EXPORT")) => KeyExchange::RsaTransport,
            (Resumption::None, Some("PSK")) => KeyExchange::None,
            (Resumption::None, _) => KeyExchange::Unknown,
            _ => KeyExchange::None,
        }
    }

    /// Size of the server's key in RSA key transport, in bits: the length of
    /// what was encrypted to it.
    pub fn rsa_transport_bits(&self) -> Option<usize> {
        let choice = self.choice.as_ref()?;
        let length = self.seen.client_key_exchange?;
        if choice.cipher.key_exchange()? != "RSA" {
            return None;
        }
        // SSL 3.0 has no length field before it (RFC 5246, 7.4.7.1).
        let field = if choice.version == Version(0x0300) {
            0
        } else {
            2
        };
        Some(length.checked_sub(field)? * 8)
    }

    /// By which means the client asked to take up an earlier session: the one
    /// that servers prefer, if several.
    pub fn offered(&self) -> Offered {
        match &self.offer {
            None => Offered::Nothing,
            Some(offer) if offer.psk => Offered::Psk,
            Some(offer) if offer.ticket => Offered::Ticket,
            Some(offer) if offer.session_id => Offered::SessionId,
            Some(_) => Offered::Nothing,
        }
    }

    /// Whether an earlier session was taken up, and by which means.
    ///
    /// TLS 1.3: the server accepts a pre-shared key. Up to TLS 1.2: it begins
    /// to encrypt without a Certificate, ServerKeyExchange or ServerHelloDone
    /// before. Until that is seen, an echoed session id says as much. A client
    /// that sends a ticket makes up a session id, and a server that accepts the
    /// ticket returns it (RFC 5077, 3.4): so it was the ticket.
    pub fn resumption(&self) -> Resumption {
        let Some(choice) = &self.choice else {
            return Resumption::Unknown;
        };
        if choice.version.is_13() {
            return if choice.psk {
                Resumption::Psk
            } else {
                Resumption::None
            };
        }
        let resumed = self.seen.server_changed_cipher || choice.session_id_echoed;
        match &self.offer {
            _ if self.seen.full_flight => Resumption::None,
            _ if !resumed => Resumption::Unknown,
            Some(offer) if offer.ticket => Resumption::Ticket,
            Some(offer) if offer.session_id => Resumption::SessionId,
            _ => Resumption::Abbreviated,
        }
    }

    /// What became of the attempt to take up an earlier session.
    pub fn attempt(&self) -> Attempt {
        let choice_is_13 = self
            .choice
            .as_ref()
            .is_some_and(|choice| choice.version.is_13());
        match (self.resumption(), self.offered()) {
            (Resumption::Unknown, _) => Attempt::Unknown,
            (Resumption::None, Offered::Nothing) => Attempt::NotOffered,
            // A client that knows that the server speaks TLS 1.3 has no
            // session of TLS 1.2 with it.
            (Resumption::None, Offered::SessionId) if choice_is_13 => Attempt::NotOffered,
            (Resumption::None, Offered::SessionId) if !self.seen.refused_known_session => {
                // A client that offers TLS 1.3 sends a random id for compatibility (RFC 8446, D.4).
                if self.offer.as_ref().is_some_and(Offer::has_13) {
                    Attempt::NotOffered
                } else {
                    Attempt::Unknown
                }
            }
            (Resumption::None, _) => Attempt::Refused,
            _ => Attempt::Accepted,
        }
    }

    /// The alert in clear that ended the connection, with who sent it.
    pub fn fatal_alert(&self) -> Option<(Direction, Alert)> {
        let mut alerts = self.alerts.iter();
        let fatal = alerts.find(|(_, level, _)| *level == AlertLevel::Fatal);
        fatal.map(|(direction, _, alert)| (*direction, *alert))
    }

    /// The kind of key with which `role` signed: `rsa_2048`, `none`, or
    /// `unknown` where the signature is encrypted or was not seen.
    pub fn signature(&self, role: Role) -> &'static str {
        let (signature, last_seen) = match role {
            Role::Server => (self.server_signature, self.seen.server_flight_ended),
            Role::Client => (self.client_signature, self.seen.client_changed_cipher),
        };
        match (signature, self.resumption()) {
            (Some(signature), _) => signature.key(),
            (None, Resumption::None) if last_seen => "none",
            (None, Resumption::None | Resumption::Unknown) => "unknown",
            (None, _) => "none",
        }
    }

    /// Tells apart what clients ask for by which a server chooses among its
    /// certificates; None if the ClientHello was not seen.
    pub fn certificate_request(&self) -> Option<u64> {
        let offer = self.offer.as_ref()?;
        Some(keyed_hash(&(self.seen.certificate_request, &offer.ciphers)))
    }

    /// Drops what the client asked for: the name of the host is in its hash.
    pub const fn forget_certificate_request(&mut self) {
        self.seen.certificate_request = 0;
    }

    /// Warnings are kept while there is room, one fatal alert always: it is the
    /// last.
    pub(super) fn note_alert(&mut self, direction: Direction, level: AlertLevel, alert: Alert) {
        let first_fatal = level == AlertLevel::Fatal && self.fatal_alert().is_none();
        if self.alerts.len() < ALERTS || first_fatal {
            self.alerts.push((direction, level, alert));
        }
    }

    /// The side began to encrypt, where that is what the message means: up to
    /// TLS 1.2.
    pub(super) fn change_cipher(&mut self, direction: Direction) -> bool {
        let clear = self
            .choice
            .as_ref()
            .is_some_and(|choice| !choice.version.is_13());
        match direction {
            Direction::FromClient => self.seen.client_changed_cipher = clear,
            Direction::FromServer => self.seen.server_changed_cipher = clear,
        }
        clear
    }

    /// Nothing more in clear is to come from either side.
    pub(super) fn ended_in_clear(&self) -> bool {
        let encrypted = self
            .choice
            .as_ref()
            .is_some_and(|choice| choice.version.is_13());
        encrypted || self.fatal_alert().is_some()
    }
}

/// A hash with a key that is random for each run and never leaves it.
pub(super) fn keyed_hash(of: &impl Hash) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEY.hash_one(of)
}
