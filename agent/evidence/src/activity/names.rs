//! How activities and modes are called in metrics and reports.

use super::{Activity, Mode};

impl Activity {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 6] = [
        Self::Handshake,
        Self::Encryption,
        Self::TcpOpen,
        Self::TcpClose,
        Self::SocketIo,
        Self::Application,
    ];

    /// Its name in metrics and reports.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Encryption => "encryption",
            Self::TcpOpen => "tcp_open",
            Self::TcpClose => "tcp_close",
            Self::SocketIo => "socket_io",
            Self::Application => "application",
        }
    }
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::User, Self::System, Self::Softirq];

    /// Its name in metrics and reports.
    pub const fn label(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::System => "system",
            Self::Softirq => "softirq",
        }
    }
}
