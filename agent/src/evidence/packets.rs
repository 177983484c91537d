//! Packets of TCP that were timed.

use super::Pid;
use super::activity::Activity;
use crate::kernel::contract::{
    TLSPROF_WORK_CLOSE, TLSPROF_WORK_DATA, TLSPROF_WORK_OPEN, tlsprof_packet_key,
    tlsprof_packet_time,
};

/// By what the owner of a packet's connection is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The process.
    Process(Pid),
    /// The local port.
    Port(u16),
    /// Nothing.
    Unknown,
}

/// Packets that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedPackets {
    /// The process that they interrupted, 0 for the idle task.
    pub on: Pid,
    /// Whose they were.
    pub owner: Owner,
    /// What for.
    pub activity: Activity,
    /// How many were timed.
    pub count: u64,
    /// Time in these, in nanoseconds, with what interrupted them.
    pub nanos: u64,
}

impl TimedPackets {
    /// As the kernel side keeps them; None if they are not of that form.
    pub fn decode(key: &tlsprof_packet_key, time: tlsprof_packet_time) -> Option<Self> {
        let activity = match u32::from(key.work) {
            TLSPROF_WORK_DATA => Activity::SocketIo,
            TLSPROF_WORK_OPEN => Activity::TcpOpen,
            TLSPROF_WORK_CLOSE => Activity::TcpClose,
            _ => return None,
        };
        let owner = match (key.owner, key.port) {
            (0, 0) => Owner::Unknown,
            (0, port) => Owner::Port(port),
            (process, _) => Owner::Process(process),
        };
        Some(Self {
            on: key.on,
            owner,
            activity,
            count: time.timed,
            nanos: time.nanos,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_a_process_or_a_port() {
        for (process, port, expected) in [
            (0, 0, Owner::Unknown),
            (0, 443, Owner::Port(443)),
            (7, 0, Owner::Process(7)),
        ] {
            let key = tlsprof_packet_key {
                owner: process,
                port,
                ..tlsprof_packet_key::default()
            };
            let time = tlsprof_packet_time { timed: 2, nanos: 9 };
            let decoded = TimedPackets::decode(&key, time);
            assert_eq!(decoded.map(|one| one.owner), Some(expected));
            assert_eq!(decoded.map(|one| (one.count, one.nanos)), Some((2, 9)));
        }
    }

    #[test]
    fn unknown_work_is_no_packet() {
        let key = tlsprof_packet_key {
            work: 99,
            ..tlsprof_packet_key::default()
        };
        let time = tlsprof_packet_time::default();
        assert_eq!(TimedPackets::decode(&key, time), None);
    }
}
