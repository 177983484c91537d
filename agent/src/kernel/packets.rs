//! The programs that time packets of TCP in softirqs: `bpf/packets.bpf.c`. They load and
//! fail by themselves, those for IPv4 and those for each other kind of work.

use aya::maps::{MapData, PerCpuArray};
use aya::programs::fentry::FEntryLink;
use aya::programs::fexit::FExitLink;
use aya::programs::{FEntry, FExit};
use aya::{Btf, Ebpf, Pod};

use super::contract::{tlsprof_packet, tlsprof_packet_key, tlsprof_packet_time};
use super::load::{Loaded, program, take_map};
use super::samples::Sampling;
use super::table::Table;
use crate::causes::one_line;

/// Owners of packets that are kept until they are taken, about once a second; some 90
/// bytes each.
const ROOM: u32 = 16_384;

/// Whether packets are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Where the kernel allows it, and the CPUs are sampled.
    Wanted,
    /// Not, for this reason.
    Off(&'static str),
}

impl Timing {
    /// Entries of the kernel's table.
    pub(super) const fn room(self, sampling: Sampling) -> u32 {
        match self {
            Self::Wanted if sampling.frequency > 0 => ROOM,
            Self::Wanted | Self::Off(_) => 1,
        }
    }
}

/// What is timed, and with which programs.
struct Work {
    /// In words.
    name: &'static str,
    /// Programs at the beginnings of functions, with these.
    entries: &'static [(&'static str, &'static str)],
    /// Programs at their ends.
    exits: &'static [(&'static str, &'static str)],
}

/// Without this nothing is timed.
const IPV4: Work = Work {
    name: "IPv4",
    entries: &[
        ("packet_socket_4", "tcp_v4_do_rcv"),
        ("packet_begin_4", "tcp_v4_rcv"),
    ],
    exits: &[("packet_end_4", "tcp_v4_rcv")],
};

const OTHERS: [Work; 5] = [
    Work {
        name: "IPv6",
        entries: &[
            ("packet_socket_6", "tcp_v6_do_rcv"),
            ("packet_begin_6", "tcp_v6_rcv"),
        ],
        exits: &[("packet_end_6", "tcp_v6_rcv")],
    },
    Work {
        name: "the end of openings",
        entries: &[("packet_request", "tcp_check_req")],
        exits: &[],
    },
    Work {
        name: "packets in TIME_WAIT",
        entries: &[("packet_time_wait", "tcp_timewait_state_process")],
        exits: &[],
    },
    Work {
        name: "the end of TIME_WAIT",
        entries: &[("time_wait_begin", "tw_timer_handler")],
        exits: &[("time_wait_end", "tw_timer_handler")],
    },
    Work {
        name: "retransmissions",
        entries: &[("retransmission_begin", "tcp_write_timer_handler")],
        exits: &[("retransmission_end", "tcp_write_timer_handler")],
    },
];

/// Whether this is one of these programs, by its C function.
pub(super) fn has_program(name: &str) -> bool {
    std::iter::once(&IPV4).chain(&OTHERS).any(|work| {
        let mut programs = work.entries.iter().chain(work.exits);
        programs.any(|(program, _)| *program == name)
    })
}

/// Programs that are attached until this is dropped.
#[derive(Default)]
struct Links {
    entries: Vec<FEntryLink>,
    exits: Vec<FExitLink>,
}

impl Work {
    /// Loads and attaches all of its programs or, with the kernel's reason, none.
    fn attach(&self, bpf: &mut Ebpf, btf: &Btf) -> Result<Links, String> {
        let mut links = Links::default();
        for (name, function) in self.exits {
            let program: &mut FExit = program(bpf, name).map_err(|error| one_line(&error))?;
            let link = program
                .load(function, btf)
                .and_then(|()| program.attach())
                .and_then(|link| program.take_link(link));
            let refused = |error| format!("fexit/{function}: {}", one_line(&error));
            links.exits.push(link.map_err(refused)?);
        }
        for (name, function) in self.entries {
            let program: &mut FEntry = program(bpf, name).map_err(|error| one_line(&error))?;
            let link = program
                .load(function, btf)
                .and_then(|()| program.attach())
                .and_then(|link| program.take_link(link));
            let refused = |error| format!("fentry/{function}: {}", one_line(&error));
            links.entries.push(link.map_err(refused)?);
        }
        Ok(links)
    }
}

/// [`tlsprof_packet_key`] as a map key.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
struct Key(tlsprof_packet_key);

#[allow(unsafe_code, reason = "aya asks for this promise about map keys")]
// SAFETY: a C structure of integers, without padding.
unsafe impl Pod for Key {}

/// [`tlsprof_packet_time`] as a map value.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
struct Time(tlsprof_packet_time);

#[allow(unsafe_code, reason = "aya asks for this promise about map values")]
// SAFETY: a C structure of integers, without padding.
unsafe impl Pod for Time {}

/// [`tlsprof_packet`] as a map value.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
struct Current(tlsprof_packet);

#[allow(unsafe_code, reason = "aya asks for this promise about map values")]
// SAFETY: a C structure of integers, without padding.
unsafe impl Pod for Current {}

/// Packets, and expiries of timers, since loading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All.
    pub all: u64,
    /// Those that were timed.
    pub timed: u64,
}

/// Packets that are timed.
pub struct Packets {
    times: Table<Key, Time>,
    current: PerCpuArray<MapData, Current>,
    /// What of the work is not timed, and why.
    missing: Vec<String>,
    _links: Vec<Links>,
}

impl Packets {
    pub(super) fn start(
        bpf: &mut Ebpf,
        btf: &Btf,
        timing: Timing,
        sampling: Sampling,
    ) -> Result<Self, String> {
        if let Timing::Off(reason) = timing {
            return Err(reason.to_owned());
        }
        if sampling.frequency == 0 {
            return Err("the CPUs are not sampled".to_owned());
        }
        let mut links = vec![IPV4.attach(bpf, btf)?];
        let mut missing = Vec::new();
        for work in &OTHERS {
            match work.attach(bpf, btf) {
                Ok(attached) => links.push(attached),
                Err(reason) => missing.push(format!("{} ({reason})", work.name)),
            }
        }
        let mut map = |name| take_map(bpf, name).map_err(|error| one_line(&error));
        Ok(Self {
            times: Table::new(map("packet_times")?, ROOM, Time::default()),
            current: PerCpuArray::try_from(map("packets")?).map_err(|error| one_line(&error))?,
            missing,
            _links: links,
        })
    }

    /// How many there were.
    pub fn counts(&self) -> Counts {
        let cpus = self.current.get(&0, 0);
        cpus.map_or(Counts::default(), |cpus| Counts {
            all: cpus.iter().map(|one| one.0.calls).sum(),
            timed: cpus.iter().map(|one| one.0.timed).sum(),
        })
    }

    /// What of the work is not timed, and why; mostly empty.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }
}

impl Loaded {
    /// Hands over the times since the last time; to be called about once a second.
    pub fn take_packets(&mut self, mut take: impl FnMut(&tlsprof_packet_key, tlsprof_packet_time)) {
        if let Ok(packets) = &mut self.packets {
            packets
                .times
                .drain(|Key(key), Time(time)| take(&key, *time));
        }
    }
}
