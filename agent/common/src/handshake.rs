//! What distinguishes handshakes, and what they consist of.

use std::time::Duration;

use crate::contract::TLSPROF_STEP_COUNT;
use crate::labelled;

labelled! {
    /// Role of the profiled process in a handshake or a connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Role {
        /// It received the ClientHello, or was connected to.
        Server = "server",
        /// It sent the ClientHello, or connected.
        Client = "client",
    }
}

labelled! {
    /// What saw a handshake.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Source {
        /// Probes in the TLS library: exact to the call.
        Library = "library",
        /// TLS records in socket calls: from the receive of handshake bytes until
        /// the thread turns to something else.
        Socket = "socket",
    }
}

/// Why a TLS library failed a handshake, in its own numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason {
    /// Whose number it is (`enum tlsprof_library`).
    pub library: u32,
    /// The number.
    pub number: u32,
}

labelled! {
    /// How a handshake ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Outcome {
        /// Both Finished messages were exchanged.
        Completed = "completed",
        /// The TLS library raised an error and gave up.
        Failed = "failed",
        /// The peer went away, or the connection object or its process ended, first.
        Abandoned = "abandoned",
    }
}

labelled! {
    /// Whether a handshake took up an earlier session, and by which means.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Resumption {
        /// A full handshake.
        None = "none",
        /// TLS 1.2 session id (RFC 5246, 7.3).
        SessionId = "session_id",
        /// TLS 1.2 session ticket (RFC 5077).
        Ticket = "ticket",
        /// TLS 1.3 pre-shared key (RFC 8446, 2.2).
        Psk = "psk",
        /// TLS 1.2 abbreviated handshake; the source cannot distinguish a session id from
        /// a ticket.
        Abbreviated = "abbreviated",
        /// The source could not see it.
        Unknown = "unknown",
    }
}

labelled! {
    /// Part of a handshake.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Step {
        /// Key generation, key agreement, encapsulation, check of the peer's key.
        KeyExchange = "key_exchange",
        /// Own signature.
        Signing = "signing",
        /// The peer's signature and certificate chain; a server's own chain building.
        Verification = "verification",
        /// RSA key transport: decryption of the premaster secret.
        RsaDecryption = "rsa_decryption",
        /// HKDF or the TLS PRF.
        KeyDerivation = "key_derivation",
        /// All the rest: messages, transcript hash, record protection, system calls.
        Other = "other",
    }
}

impl Step {
    /// How many there are: those of the programs and [`Step::Other`].
    pub const COUNT: usize = TLSPROF_STEP_COUNT as usize + 1;
}

const _: () = assert!(Step::ALL.len() == Step::COUNT);

/// CPU time of the steps of one handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// Time in each of [`Step::ALL`]; they add up to the handshake's CPU time.
    pub cpu: [Duration; Step::COUNT],
    /// False when key derivation was not probed during this handshake, and its
    /// time is still in [`Step::Other`].
    pub key_derivation_observed: bool,
}
