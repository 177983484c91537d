//! What all parts share.

/// Bytes of TLS that are read in one direction before giving up. A server's
/// clear flight is mostly its certificate chain; 20 KiB hold five large ones.
pub const TLS_LIMIT: usize = 20 * 1024;

/// Alerts that are kept for one connection. A peer can send warnings forever.
pub(super) const ALERTS: usize = 4;

/// Which way bytes travelled. Client is who opens the TLS connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client to the server.
    FromClient,
    /// From the server to the client.
    FromServer,
}

impl Direction {
    /// The value of the metric label: which peer sent the bytes.
    pub const fn label(self) -> &'static str {
        match self {
            Self::FromClient => "client",
            Self::FromServer => "server",
        }
    }
}

/// Why an exchange was given up. What was learned before stays valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GaveUp {
    /// More than [`TLS_LIMIT`] bytes, or a message that says it is longer.
    TooLong,
    /// Records or messages that no TLS peer would accept.
    Malformed,
    /// Bytes were lost on the way from the kernel.
    Gap,
    /// The first record seen is not the first of the connection.
    Underway,
}

impl GaveUp {
    /// All reasons, for counters.
    pub const ALL: [Self; 4] = [Self::TooLong, Self::Malformed, Self::Gap, Self::Underway];

    /// The value of the metric label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::Malformed => "malformed",
            Self::Gap => "gap",
            Self::Underway => "underway",
        }
    }
}
