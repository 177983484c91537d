//! The programs that follow TCP connections. They load and fail by themselves:
//! the rest of the profile does not need them.

use std::time::Duration;

use aya::Ebpf;
use aya::programs::{BtfTracePoint, ProgramError};
use serde::Deserialize;

use super::accept;
use super::hook_cost::FailingReads;
use super::load::{LoadError, program};
use super::socket_calls::Tier;
use super::types::KernelTypes;
use tlsprof_common::causes::one_line as reason;

/// How much of TCP connections is followed: `profile.connections`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionHooks {
    /// All that this kernel allows.
    #[default]
    Auto,
    /// All, with socket calls seen by their tracepoints or not at all (Linux 6.3).
    Tracepoint,
    /// All, with socket calls seen at the ends of the kernel's functions for TCP or
    /// not at all (Linux 5.15).
    Fentry,
    /// All, with socket calls seen at the end of every system call or not at all
    /// (Linux 5.10).
    RawSyscalls,
    /// Opening and closing, without hooks on socket calls: no turns, and a
    /// connection that its peer resets has no owner.
    LifeCycle,
    /// Nothing.
    Off,
}

impl ConnectionHooks {
    /// The ways to try, best first.
    fn tiers(self) -> &'static [Tier] {
        match self {
            Self::Auto => &Tier::ALL,
            Self::Tracepoint => &[Tier::Tracepoint],
            Self::Fentry => &[Tier::Fentry],
            Self::RawSyscalls => &[Tier::RawSyscalls],
            Self::LifeCycle | Self::Off => &[],
        }
    }
}

/// Where the state of connections is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// In the sockets.
    Sockets,
    /// In a hash by the addresses of the sockets: where programs have no storage
    /// in sockets (Linux 5.10), or no pointer that the kernel takes for a socket's.
    Addresses,
}

/// What of connections is followed, with the reason where something is not.
#[derive(Clone, Debug)]
pub struct Connections {
    /// Opening, closing, TIME_WAIT.
    pub life_cycle: Result<(), String>,
    /// Socket calls, and how they are seen: turns, owners from the first call on,
    /// TLS from its records.
    pub calls: Result<Tier, String>,
    /// Accepts: how long connections wait for them.
    pub accepts: Result<(), String>,
    /// What a socket call that moves nothing costs more because it is seen; 0 where none
    /// is, or where that could not be measured.
    pub call_cost: Duration,
}

pub(super) const STATE: &str = "tcp_state";
/// Handles what the kernel leaves out of the former.
pub(super) const STATE_LEFT_OUT: &str = "tcp_state_left_out";
/// Ends what the former two leave until the socket is destroyed: attached before them.
const DESTROYED: &str = "tcp_destroyed";
const STATE_TRACEPOINT: &str = "inet_sock_set_state";

/// The programs at changes of a connection's state, with their tracepoints.
const STATES: [(&str, &str); 3] = [
    (DESTROYED, "tcp_destroy_sock"),
    (STATE, STATE_TRACEPOINT),
    (STATE_LEFT_OUT, STATE_TRACEPOINT),
];

/// Opens the object by `open`, again for each way that the kernel refuses, and
/// attaches what of connections can be followed.
///
/// # Errors
///
/// Those of `open`; a refused program is none.
pub(super) fn attach(
    types: &KernelTypes,
    hooks: ConnectionHooks,
    open: impl Fn(Storage) -> Result<Ebpf, LoadError>,
) -> Result<(Ebpf, Connections), LoadError> {
    let reads = FailingReads::new();
    let mut refusals = Vec::new();
    for tier in hooks.tiers() {
        let mut bpf = open(tier.storage())?;
        let bare = reads.least();
        match attach_tier(&mut bpf, types, *tier) {
            Ok(()) => {
                let call_cost = reads.least().saturating_sub(bare);
                let accepts = match tier {
                    Tier::RawSyscalls => Ok(()),
                    Tier::Tracepoint | Tier::Fentry => accept::attach(&mut bpf, types),
                };
                return Ok((bpf, followed(Ok(*tier), accepts, call_cost)));
            }
            Err(reason) => refusals.push(reason),
        }
    }
    let calls = if refusals.is_empty() {
        switched_off()
    } else {
        Err(refusals.join("; "))
    };
    if hooks == ConnectionHooks::Off {
        let connections = Connections {
            life_cycle: switched_off(),
            calls,
            accepts: switched_off(),
            call_cost: Duration::ZERO,
        };
        return Ok((open(Storage::Sockets)?, connections));
    }
    attach_life_cycle(types, calls, open)
}

/// Whether the kernel lets a way to see socket calls in; nothing stays attached.
///
/// # Errors
///
/// As for [`attach`]; the inner one is the kernel's reason.
pub(super) fn try_tier(
    types: &KernelTypes,
    tier: Tier,
    open: impl Fn(Storage) -> Result<Ebpf, LoadError>,
) -> Result<Result<(), String>, LoadError> {
    let mut bpf = open(tier.storage())?;
    Ok(attach_tier(&mut bpf, types, tier))
}

fn switched_off<T>() -> Result<T, String> {
    Err("switched off by profile.connections".to_owned())
}

const fn followed(
    calls: Result<Tier, String>,
    accepts: Result<(), String>,
    call_cost: Duration,
) -> Connections {
    Connections {
        life_cycle: Ok(()),
        calls,
        accepts,
        call_cost,
    }
}

/// Socket calls come first, so that of every connection whose opening is seen all
/// calls are seen too.
fn attach_tier(bpf: &mut Ebpf, types: &KernelTypes, tier: Tier) -> Result<(), String> {
    tier.load(bpf, types)?;
    load_state(bpf, types)?;
    tier.start(bpf, types)?;
    start_state(bpf)
}

fn attach_life_cycle(
    types: &KernelTypes,
    calls: Result<Tier, String>,
    open: impl Fn(Storage) -> Result<Ebpf, LoadError>,
) -> Result<(Ebpf, Connections), LoadError> {
    let attach = |storage| -> Result<(Ebpf, Result<(), String>), LoadError> {
        let mut bpf = open(storage)?;
        let attached = load_state(&mut bpf, types).and_then(|()| start_state(&mut bpf));
        Ok((bpf, attached))
    };
    let (mut bpf, attached) = match attach(Storage::Sockets)? {
        (_, Err(_)) => attach(Storage::Addresses)?,
        attached => attached,
    };
    let connections = match attached {
        Ok(()) => followed(calls, accept::attach(&mut bpf, types), Duration::ZERO),
        Err(reason) => Connections {
            life_cycle: Err(reason.clone()),
            calls: Err(reason.clone()),
            accepts: Err(reason),
            call_cost: Duration::ZERO,
        },
    };
    Ok((bpf, connections))
}

fn load_state(bpf: &mut Ebpf, types: &KernelTypes) -> Result<(), String> {
    each_state(bpf, |program, tracepoint| {
        program.load(tracepoint, types.btf())
    })
}

fn start_state(bpf: &mut Ebpf) -> Result<(), String> {
    each_state(bpf, |program, _| program.attach().map(drop))
}

fn each_state(
    bpf: &mut Ebpf,
    act: impl Fn(&mut BtfTracePoint, &str) -> Result<(), ProgramError>,
) -> Result<(), String> {
    STATES.iter().try_for_each(|(name, tracepoint)| {
        let program = program(bpf, name).map_err(|error| reason(&error))?;
        act(program, tracepoint).map_err(|error| format!("tp_btf/{tracepoint}: {}", reason(&error)))
    })
}
