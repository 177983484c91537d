//! The figures that are compared: what each is called and what it means to have more of it.

use super::model::{FigureUnit, Sense};
use super::statistics::Scale;
use crate::model::Activity;

/// A figure of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// CPU time of the service by requests.
    CpuPerRequest,
    /// The part of it that the kernel accounts to user mode.
    UserPerRequest,
    /// The part of it that the kernel accounts to kernel mode.
    SystemPerRequest,
    /// CPU time of a full handshake.
    FullHandshake,
    /// CPU time of a resumed handshake.
    ResumedHandshake,
    /// CPU time to encrypt a million bytes.
    CpuPerMegabyte,
    /// CPU time of one activity by requests.
    Activity(Activity),
    /// Share of CPU time that goes on handshakes.
    HandshakeShare,
    /// Handshakes by requests.
    HandshakesPerRequest,
    /// Share of handshakes that are resumed.
    ResumptionShare,
    /// Requests by connections.
    TurnsPerConnection,
    /// TIME_WAIT sockets by requests.
    TimeWaitPerRequest,
    /// Requests a second.
    Throughput,
}

impl Figure {
    /// All figures, in the order in which they are shown.
    pub const ALL: [Self; 18] = [
        Self::CpuPerRequest,
        Self::UserPerRequest,
        Self::SystemPerRequest,
        Self::FullHandshake,
        Self::ResumedHandshake,
        Self::CpuPerMegabyte,
        Self::Activity(Activity::Handshake),
        Self::Activity(Activity::Encryption),
        Self::Activity(Activity::SocketIo),
        Self::Activity(Activity::TcpOpen),
        Self::Activity(Activity::TcpClose),
        Self::Activity(Activity::Application),
        Self::HandshakeShare,
        Self::HandshakesPerRequest,
        Self::ResumptionShare,
        Self::TurnsPerConnection,
        Self::TimeWaitPerRequest,
        Self::Throughput,
    ];

    /// Figures by which services are ranked, the first that is known first.
    pub(crate) const HEADLINES: [Self; 4] = [
        Self::CpuPerRequest,
        Self::FullHandshake,
        Self::CpuPerMegabyte,
        Self::ResumedHandshake,
    ];

    /// Its name in JSON.
    pub fn label(self) -> String {
        match self {
            Self::CpuPerRequest => "cpu_per_request".to_owned(),
            Self::UserPerRequest => "user_per_request".to_owned(),
            Self::SystemPerRequest => "system_per_request".to_owned(),
            Self::FullHandshake => "cpu_per_full_handshake".to_owned(),
            Self::ResumedHandshake => "cpu_per_resumed_handshake".to_owned(),
            Self::CpuPerMegabyte => "cpu_per_megabyte".to_owned(),
            Self::Activity(activity) => format!("{}_per_request", activity.label()),
            Self::HandshakeShare => "handshake_share".to_owned(),
            Self::HandshakesPerRequest => "handshakes_per_request".to_owned(),
            Self::ResumptionShare => "resumption_share".to_owned(),
            Self::TurnsPerConnection => "turns_per_connection".to_owned(),
            Self::TimeWaitPerRequest => "time_wait_per_request".to_owned(),
            Self::Throughput => "requests_per_second".to_owned(),
        }
    }

    /// Its name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::CpuPerRequest => "CPU per request",
            Self::UserPerRequest => "  user",
            Self::SystemPerRequest => "  system",
            Self::FullHandshake => "CPU per full handshake",
            Self::ResumedHandshake => "CPU per resumed handshake",
            Self::CpuPerMegabyte => "CPU per MB encrypted",
            Self::Activity(Activity::Handshake) => "handshake CPU per request",
            Self::Activity(Activity::Encryption) => "encryption CPU per request",
            Self::Activity(Activity::SocketIo) => "socket I/O CPU per request",
            Self::Activity(Activity::TcpOpen) => "TCP open CPU per request",
            Self::Activity(Activity::TcpClose) => "TCP close CPU per request",
            Self::Activity(_) => "application CPU per request",
            Self::HandshakeShare => "handshake share of CPU",
            Self::HandshakesPerRequest => "handshakes per request",
            Self::ResumptionShare => "resumed handshakes",
            Self::TurnsPerConnection => "requests per connection",
            Self::TimeWaitPerRequest => "TIME_WAIT per request",
            Self::Throughput => "requests per second",
        }
    }

    /// On what scale it is compared.
    pub(crate) const fn scale(self) -> Scale {
        match self {
            Self::HandshakeShare | Self::ResumptionShare => Scale::Share,
            _ => Scale::Ratio,
        }
    }

    /// What more of it means.
    pub(crate) const fn sense(self) -> Sense {
        match self {
            // A dearer application makes the share smaller: that is no improvement.
            Self::HandshakeShare => Sense::Context,
            Self::Throughput => Sense::Load,
            Self::ResumptionShare | Self::TurnsPerConnection => Sense::Benefit,
            _ => Sense::Cost,
        }
    }

    /// Whether it is of requests, or counts them.
    pub(crate) const fn is_by_request(self) -> bool {
        matches!(
            self,
            Self::CpuPerRequest
                | Self::UserPerRequest
                | Self::SystemPerRequest
                | Self::Activity(_)
                | Self::HandshakesPerRequest
                | Self::TurnsPerConnection
                | Self::TimeWaitPerRequest
                | Self::Throughput
        )
    }

    /// What it is counted in.
    pub const fn unit(self) -> FigureUnit {
        match self {
            Self::HandshakeShare | Self::ResumptionShare => FigureUnit::Share,
            Self::HandshakesPerRequest | Self::TurnsPerConnection | Self::TimeWaitPerRequest => {
                FigureUnit::Number
            }
            Self::Throughput => FigureUnit::PerSecond,
            _ => FigureUnit::Seconds,
        }
    }

    /// What it depends on beside the server; empty if nothing is to be said.
    pub const fn caveat(self) -> &'static str {
        match self {
            Self::Throughput => "depends on the load",
            Self::HandshakeShare => "depends on the service's other work",
            Self::ResumptionShare | Self::TurnsPerConnection | Self::HandshakesPerRequest => {
                "also depends on the clients"
            }
            _ => "",
        }
    }
}
