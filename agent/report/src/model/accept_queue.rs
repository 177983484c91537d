//! Accept queues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantiles::Quantiles;

/// What waited to be accepted by a service.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct AcceptQueue {
    /// Its listening sockets and their queues; null where they could not be read.
    pub queues: Option<ListeningQueues>,
    /// Connections whose accept was seen; null if none was, or where the kernel shows
    /// none.
    pub wait: Option<AcceptWait>,
}

/// The accept queues of a service's listening sockets, read every second.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct ListeningQueues {
    /// Listening sockets at the end.
    pub listeners: u32,
    /// The fullest of their queues at the end.
    pub present: QueueLength,
    /// The fullest queue of all readings.
    pub peak: QueueLength,
    /// Packets that the kernel dropped because a queue was full. One client may send
    /// several: it tries again.
    pub overflows: u64,
}

/// How full a queue is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct QueueLength {
    /// Connections that wait to be accepted.
    pub length: u32,
    /// How many may wait: the smaller of the backlog of listen(2) and
    /// `net.core.somaxconn`. The kernel lets one more in.
    pub limit: u32,
}

/// How long connections waited to be accepted.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct AcceptWait {
    /// How many connections.
    pub connections: u64,
    /// From the end of the TCP handshake to accept.
    pub seconds: Quantiles,
}
