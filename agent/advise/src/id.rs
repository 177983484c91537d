//! The names of findings: an interface, like those of metrics.

/// A kind of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// A slow key exchange where clients offered a faster one.
    SlowKeyExchange,
    /// An RSA certificate where clients accept ECDSA.
    CostlyCertificate,
    /// Data is encrypted by a slow cipher where clients offered a faster one.
    CostlyCipher,
    /// Verification of certificates inside the server's handshakes.
    CertificateVerification,
    /// A certificate chain that takes much of the wire.
    LongCertificateChain,
    /// Sessions that clients brought, refused.
    ResumptionRefused,
    /// Clients, or the service as a client, bring no session.
    ResumptionNotOffered,
    /// The server ends connections after a fixed number of turns.
    ConnectionsClosedAfterNTurns,
    /// The server ends connections after one turn.
    KeepAliveOff,
    /// The service opens a connection for each request to another server.
    UpstreamKeepAliveOff,
    /// Many TIME_WAIT sockets in the server role.
    TimeWaitBuildUp,
    /// Ephemeral ports toward one endpoint run out.
    EphemeralPorts,
    /// A process for each connection.
    ProcessPerConnection,
    /// Connections are dropped, or wait long, before they are accepted.
    AcceptQueueOverflow,
    /// Handshakes wait for locks.
    LockWait,
    /// Handshakes wait for disks.
    DiskWait,
    /// Handshakes wait for random numbers.
    RandomWait,
    /// Handshakes wait for what comes through a pipe.
    PipeWait,
    /// Handshakes fail.
    HandshakeFailures,
    /// TLS handshakes take little.
    TlsIsNotTheBottleneck,
    /// What a post-quantum key exchange costs.
    PostQuantumCost,
}

impl Id {
    /// All findings, in the order of their pages.
    pub const ALL: [Self; 21] = [
        Self::SlowKeyExchange,
        Self::CostlyCertificate,
        Self::CostlyCipher,
        Self::CertificateVerification,
        Self::LongCertificateChain,
        Self::ResumptionRefused,
        Self::ResumptionNotOffered,
        Self::ConnectionsClosedAfterNTurns,
        Self::KeepAliveOff,
        Self::UpstreamKeepAliveOff,
        Self::TimeWaitBuildUp,
        Self::EphemeralPorts,
        Self::ProcessPerConnection,
        Self::AcceptQueueOverflow,
        Self::LockWait,
        Self::DiskWait,
        Self::RandomWait,
        Self::PipeWait,
        Self::HandshakeFailures,
        Self::TlsIsNotTheBottleneck,
        Self::PostQuantumCost,
    ];

    /// The stable name, as in reports, and in the page's file name.
    pub const fn label(self) -> &'static str {
        match self {
            Self::SlowKeyExchange => "slow-key-exchange",
            Self::CostlyCertificate => "costly-certificate",
            Self::CostlyCipher => "costly-cipher",
            Self::CertificateVerification => "certificate-verification",
            Self::LongCertificateChain => "long-certificate-chain",
            Self::ResumptionRefused => "resumption-refused",
            Self::ResumptionNotOffered => "resumption-not-offered",
            Self::ConnectionsClosedAfterNTurns => "connections-closed-after-n-turns",
            Self::KeepAliveOff => "keep-alive-off",
            Self::UpstreamKeepAliveOff => "upstream-keep-alive-off",
            Self::TimeWaitBuildUp => "time-wait-build-up",
            Self::EphemeralPorts => "ephemeral-ports",
            Self::ProcessPerConnection => "process-per-connection",
            Self::AcceptQueueOverflow => "accept-queue-overflow",
            Self::LockWait => "lock-wait",
            Self::DiskWait => "disk-wait",
            Self::RandomWait => "random-wait",
            Self::PipeWait => "pipe-wait",
            Self::HandshakeFailures => "handshake-failures",
            Self::TlsIsNotTheBottleneck => "tls-is-not-the-bottleneck",
            Self::PostQuantumCost => "post-quantum-cost",
        }
    }

    /// The page on it, from the root of the repository.
    pub fn page(self) -> String {
        format!("docs/findings/{}.md", self.label())
    }

    /// What the change may break.
    pub const fn risk(self) -> &'static str {
        match self {
            Self::SlowKeyExchange => {
                "None for security as long as X25519MLKEM768 stays in the list: without it, clients \
                 lose protection against future quantum computers. X25519 and P-256 give 128-bit \
                 security, like AES-128. Without the slow group, clients that offer nothing else \
                 are turned away."
            }
            Self::CostlyCertificate => {
                "Clients of before 2014 may not know ECDSA: keep the RSA certificate beside the \
                 new one. Clients that pin the old key must learn the new one first."
            }
            Self::CostlyCipher => {
                "Suites with CBC are no loss: they have a history of attacks by padding and timing \
                 (Lucky Thirteen), and 3DES has blocks too short for long connections (Sweet32). \
                 Clients without AES in hardware, such as old telephones, prefer ChaCha20 for a \
                 reason: let it stay in the list for those who name it first."
            }
            Self::CertificateVerification => {
                "Resumed sessions are not verified again: a certificate revoked meanwhile is \
                 noticed when its session ends."
            }
            Self::LongCertificateChain => {
                "A client that finds no way to a root that it knows turns away: try old clients, and those that are no browsers, which do not fetch missing intermediates."
            }
            Self::ResumptionRefused => {
                "Who gets a ticket key can read the sessions of TLS 1.2 that it protects: change \
                 keys every day, keep them out of backups. Sessions take memory, about 1 KB each."
            }
            Self::ResumptionNotOffered => {
                "A resumed session lets a server, or who sees ticket reuse in TLS 1.2, link a \
                 client's connections."
            }
            Self::ConnectionsClosedAfterNTurns | Self::KeepAliveOff => {
                "Each idle connection keeps memory, and in servers with a thread or process for \
                 each connection one of these: bound the idle time."
            }
            Self::UpstreamKeepAliveOff | Self::EphemeralPorts => {
                "The other server must allow as many idle connections, and must not close them \
                 just when a request comes: its idle time must be longer than the service's."
            }
            Self::TimeWaitBuildUp => {
                "Never shorten TIME_WAIT by resets (SO_LINGER 0): late segments could end in \
                 another connection."
            }
            Self::ProcessPerConnection => {
                "Processes keep connections apart in memory; threads and event loops do not. \
                 What was safe for one connection a process may not be for many."
            }
            Self::AcceptQueueOverflow => {
                "A longer queue hides that a server is too slow: clients wait in it, and may have \
                 gone when their turn comes. Each waiting connection takes kernel memory."
            }
            Self::LockWait | Self::DiskWait => {
                "Sessions in the memory of one process cannot be resumed in another: look at \
                 refused sessions afterwards."
            }
            Self::RandomWait => {
                "Only a source that the kernel seeds is safe: never one that cannot block because \
                 it has nothing to wait for."
            }
            Self::PipeWait => {
                "Random numbers must come from a source that the kernel seeds. What else came \
                 through the pipe, keys or a log, must be as safe where it goes then."
            }
            Self::HandshakeFailures => {
                "To let old clients in may weaken what the server accepts from all: weigh who \
                 they are."
            }
            Self::TlsIsNotTheBottleneck => "None.",
            Self::PostQuantumCost => {
                "None for keeping it. Without it, traffic that is recorded today can be decrypted once \
                 a large enough quantum computer exists."
            }
        }
    }
}
