//! What distinguishes handshakes, and what they consist of.

use std::time::Duration;

use crate::contract::TLSPROF_STEP_COUNT;

/// Role of the profiled process in a handshake or a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// It received the ClientHello, or was connected to.
    Server,
    /// It sent the ClientHello, or connected.
    Client,
}

/// What saw a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// Probes in the TLS library: exact to the call.
    Library,
    /// TLS records in socket calls: from the receive of handshake bytes until
    /// the thread turns to something else.
    Socket,
}

/// Why a TLS library failed a handshake, in its own numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason {
    /// Whose number it is (`enum tlsprof_library`).
    pub library: u32,
    /// The number.
    pub number: u32,
}

/// How a handshake ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Both Finished messages were exchanged.
    Completed,
    /// The TLS library raised an error and gave up.
    Failed,
    /// The peer went away, or the connection object or its process ended, first.
    Abandoned,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Completed, Self::Failed, Self::Abandoned];
}

/// Whether a handshake took up an earlier session, and by which means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resumption {
    /// A full handshake.
    None,
    /// TLS 1.2 session id (RFC 5246, 7.3).
    SessionId,
    /// TLS 1.2 session ticket (RFC 5077).
    Ticket,
    /// TLS 1.3 pre-shared key (RFC 8446, 2.2).
    Psk,
    /// TLS 1.2 abbreviated handshake; the source cannot distinguish a session id from
    /// a ticket.
    Abbreviated,
    /// The source could not see it.
    Unknown,
}

impl Resumption {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::SessionId,
        Self::Ticket,
        Self::Psk,
        Self::Abbreviated,
        Self::Unknown,
    ];
}

/// Part of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Key generation, key agreement, encapsulation, check of the peer's key.
    KeyExchange,
    /// Own signature.
    Signing,
    /// The peer's signature and certificate chain; a server's own chain building.
    Verification,
    /// RSA key transport: decryption of the premaster secret.
    RsaDecryption,
    /// HKDF or the TLS PRF.
    KeyDerivation,
    /// All the rest: messages, transcript hash, record protection, system calls.
    Other,
}

impl Step {
    /// How many there are: those of the programs and [`Step::Other`].
    pub const COUNT: usize = TLSPROF_STEP_COUNT as usize + 1;

    /// All steps, in the order in which reports show them.
    pub const ALL: [Self; Self::COUNT] = [
        Self::KeyExchange,
        Self::Signing,
        Self::Verification,
        Self::RsaDecryption,
        Self::KeyDerivation,
        Self::Other,
    ];
}

macro_rules! label {
    ($type:ty { $($variant:ident => $text:literal),+ $(,)? }) => {
        impl $type {
            /// The value of the metric label and of the report's JSON.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}

label!(Role { Server => "server", Client => "client" });
label!(Source { Library => "library", Socket => "socket" });
label!(Outcome { Completed => "completed", Failed => "failed", Abandoned => "abandoned" });
label!(Resumption {
    None => "none", SessionId => "session_id", Ticket => "ticket", Psk => "psk",
    Abbreviated => "abbreviated", Unknown => "unknown",
});
label!(Step {
    KeyExchange => "key_exchange", Signing => "signing", Verification => "verification",
    RsaDecryption => "rsa_decryption", KeyDerivation => "key_derivation", Other => "other",
});

/// CPU time of the steps of one handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// Time in each of [`Step::ALL`]; they add up to the handshake's CPU time.
    pub cpu: [Duration; Step::COUNT],
    /// False when key derivation was not probed during this handshake, and its
    /// time is still in [`Step::Other`].
    pub key_derivation_observed: bool,
}
