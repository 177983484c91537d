//! TCP connections, as the kernel's socket states and socket calls show them.

use std::time::Duration;

use crate::{Pid, Resumption, Role, labelled};

/// Bytes of the shortest request in HTTP/2: the header of a HEADERS frame (RFC 9113, 4.1), and in
/// it the two fields of CONNECT, a byte each (RFC 9113, 8.5; RFC 7541, 6.1).
const SHORTEST_HTTP2_REQUEST: u64 = 9 + 2;

/// Tells TCP connections apart; never reused while the agent runs.
pub type ConnectionId = u64;

labelled! {
    /// Who ended a connection: who sent close_notify (of TLS), FIN or RST first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Closer {
        /// The profiled process.
        Local = "local",
        /// Its peer.
        Remote = "remote",
        /// Neither: the peer no longer answered.
        Timeout = "timeout",
    }
}

/// The process that has a connection: the one that connected, or the first that
/// read or wrote; where nobody did, the one that closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The process.
    pub process: Pid,
    /// Name of the thread (comm), for processes that are gone already.
    pub comm: String,
}

/// What a connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Carries {
    /// No TLS, or TLS whose beginning was not seen.
    Plain,
    /// A TLS handshake that did not complete.
    Handshake,
    /// TLS whose handshake completed.
    Tls,
}

/// Where a connection of a client leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Tells address and port of peers apart: a hash with a key of this run.
    pub endpoint: u64,
    /// How many ephemeral ports there are for connections to one of them.
    pub local_ports: u32,
}

/// A connection was opened; its end is still to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Tells it apart.
    pub id: ConnectionId,
    /// Who has it.
    pub owner: Owner,
    /// Whether the owner was connected to, or connected.
    pub role: Role,
    /// Local TCP port.
    pub port: u16,
    /// Where it leads, if the owner connected.
    pub remote: Option<Remote>,
    /// From the end of the TCP handshake to accept; None if no accept was seen.
    pub accept_wait: Option<Duration>,
    /// Whether socket calls were seen when it was opened, and so its handshake is.
    pub followed: bool,
}

/// A connection that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Tells it apart.
    pub id: ConnectionId,
    /// Who had it; None if it ended before any process read, wrote or closed
    /// it, and for connections of the kernel itself.
    pub owner: Option<Owner>,
    /// Where it led, if the owner connected and the opening was seen.
    pub remote: Option<Remote>,
    /// Facts that only the opening shows; None for a connection that was open
    /// before the watch began.
    pub whole: Option<Whole>,
    /// When it ended, by the monotonic clock.
    pub ended: Duration,
    /// Payload received, in bytes. Of a whole life, seen or not.
    pub bytes_received: u64,
    /// Payload sent, in bytes, each byte once.
    pub bytes_sent: u64,
    /// What it carried.
    pub carries: Carries,
    /// Part of `bytes_received` after its TLS handshake, 0 without TLS.
    pub application_received: u64,
    /// Part of `bytes_sent` after its TLS handshake, 0 without TLS.
    pub application_sent: u64,
    /// Cipher suite by its TLS registry name, or `unknown`.
    pub cipher: &'static str,
    /// Whether its TLS handshake took up an earlier session.
    pub resumption: Resumption,
    /// Whether its TLS hellos allow HTTP/2: it was chosen, or offered to a TLS 1.3 server, whose
    /// choice is encrypted. None where they were not read.
    pub may_be_http2: Option<bool>,
    /// Payload of a full segment on the way to the peer, in bytes.
    pub segment: u32,
    /// Least round trip that TCP has measured.
    pub round_trip: Option<Duration>,
    /// Who ended it.
    pub closed_by: Closer,
    /// True if it ended by a reset, from either side.
    pub reset: bool,
    /// True if it left a TIME_WAIT bucket on this side.
    pub time_wait: bool,
}

impl Connection {
    /// Requests that its turns may hide, at most: HTTP/2 multiplexes, and each request is at
    /// least as long as [`SHORTEST_HTTP2_REQUEST`].
    pub fn hidden_requests(&self, whole: &Whole) -> u64 {
        let asked = match whole.role {
            Role::Server => self.application_received,
            Role::Client => self.application_sent,
        };
        let may_be_http2 = self.may_be_http2.unwrap_or(self.carries == Carries::Tls);
        match (may_be_http2, whole.turns) {
            (true, Some(turns)) => (asked / SHORTEST_HTTP2_REQUEST).saturating_sub(turns.into()),
            _ => 0,
        }
    }

    /// Payload that was sent up to the end of its TLS handshake, in bytes: all of the
    /// handshake but session tickets, and what came before TLS. 0 without TLS, or where
    /// the handshake did not complete.
    pub const fn handshake_sent(&self) -> u64 {
        match self.carries {
            Carries::Tls => self.bytes_sent.saturating_sub(self.application_sent),
            Carries::Plain | Carries::Handshake => 0,
        }
    }
}

/// What is known of a connection whose whole life was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Whole {
    /// Whether the owner was connected to, or connected.
    pub role: Role,
    /// Local TCP port.
    pub port: u16,
    /// From the end of the TCP handshake to the end of the socket.
    pub duration: Duration,
    /// Requests with their answers; None where not all of its socket calls were seen, and they
    /// are not estimated either.
    pub turns: Option<u32>,
    /// Those of them that were seen; some of them may be messages of TLS where `turns` is None.
    pub turns_seen: u32,
    /// Set where `turns` is an estimate.
    pub estimate: Option<TurnEstimate>,
}

/// What a connection with an estimated number of turns adds to sums.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnEstimate {
    /// To the variance of a sum of turns.
    pub variance: f64,
    /// Its number is right in the mean of many only: it is that of no connection.
    pub is_mean: bool,
}
