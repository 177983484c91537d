//! What a client can hold on to.

use std::time::Duration;

/// Bounds of the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Connections at once; further ones wait in the kernel's queue.
    pub connections: u32,
    /// A TLS handshake must end within this time.
    pub handshake: Duration,
    /// A request's head must come within this time,
    pub head: Duration,
    /// and be no longer than this many bytes.
    pub(crate) head_bytes: usize,
    /// The whole connection, the answer's way to a slow reader included, may take
    /// this long.
    pub connection: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 64,
            handshake: Duration::from_secs(5),
            head: Duration::from_secs(5),
            head_bytes: 16 * 1024,
            // Twice the usual time limit of a scrape.
            connection: Duration::from_secs(20),
        }
    }
}
