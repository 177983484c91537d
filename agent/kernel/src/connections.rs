//! The programs that follow TCP connections. They load and fail by themselves:
//! the rest of the profile does not need them.

use aya::Ebpf;
use serde::{Deserialize, Serialize};

use super::error::{LoadError, Unavailable};
use super::hook::{self, Hook, Link};
use super::object::Storage;
use super::socket_calls::Tier;
use super::types::KernelTypes;

/// How much of TCP connections is followed: `profile.connections`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
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

/// The TCP connections that are followed, or why none are.
#[derive(Debug)]
pub struct Connections(Result<Followed, Unavailable>);

#[derive(Debug)]
struct Followed {
    calls: Result<Calls, Unavailable>,
    accepts: Result<Vec<Link>, Unavailable>,
    _states: Vec<Link>,
}

/// The hooks on socket calls; the first one stops the clocks that the others start.
#[derive(Debug)]
pub(super) struct Calls {
    tier: Tier,
    hooks: Vec<Hook>,
    /// Empty while they are out.
    links: Vec<Link>,
}

impl Connections {
    /// Opening, closing, TIME_WAIT.
    ///
    /// # Errors
    ///
    /// Why they are not followed.
    pub fn life_cycle(&self) -> Result<(), &Unavailable> {
        self.0.as_ref().map(drop)
    }

    /// The way to see socket calls: turns, owners from the first call on, TLS from its records.
    ///
    /// # Errors
    ///
    /// Why they are not seen.
    pub fn calls(&self) -> Result<Tier, &Unavailable> {
        self.0.as_ref()?.calls.as_ref().map(|calls| calls.tier)
    }

    fn calls_mut(&mut self) -> Option<&mut Calls> {
        self.0.as_mut().ok()?.calls.as_mut().ok()
    }

    /// Takes the hooks on socket calls out, but for what stops the clocks that they started.
    pub(super) fn release_calls(&mut self) {
        if let Some(calls) = self.calls_mut() {
            calls.links.truncate(1);
        }
    }

    /// Takes that out as well.
    pub(super) fn release_switch(&mut self) {
        if let Some(calls) = self.calls_mut() {
            calls.links.clear();
        }
    }

    /// Whether the hooks on socket calls were taken out.
    pub(super) fn calls_are_out(&mut self) -> bool {
        self.calls_mut().is_some_and(|calls| calls.links.is_empty())
    }

    /// Puts the hooks on socket calls back.
    ///
    /// # Errors
    ///
    /// When the kernel refuses now what it let in before.
    pub(super) fn attach_calls(&mut self, bpf: &mut Ebpf) -> Result<(), Unavailable> {
        if let Some(calls) = self.calls_mut() {
            calls.links = hook::attach_all(bpf, &calls.hooks)?;
        }
        Ok(())
    }

    /// Accepts: how long connections wait for them.
    ///
    /// # Errors
    ///
    /// Why they are not seen.
    pub fn accepts(&self) -> Result<(), &Unavailable> {
        self.0.as_ref()?.accepts.as_ref().map(drop)
    }
}

/// Stops the clock of a thread that leaves its CPU.
pub(super) const SWITCH: &str = "sched_switch";
pub(super) const STATE: &str = "tcp_state";
/// Handles what the kernel leaves out of the former.
pub(super) const STATE_LEFT_OUT: &str = "tcp_state_left_out";
/// Ends what the former two leave until the socket is destroyed: attached before them.
const DESTROYED: &str = "tcp_destroyed";
const STATE_TRACEPOINT: &str = "inet_sock_set_state";

/// The programs at changes of a connection's state.
const STATES: [Hook; 3] = [
    Hook::tracepoint(DESTROYED, "tcp_destroy_sock"),
    Hook::tracepoint(STATE, STATE_TRACEPOINT),
    Hook::tracepoint(STATE_LEFT_OUT, STATE_TRACEPOINT),
];

/// Accepts: `bpf/accept.bpf.c`.
const ACCEPT: &str = "inet_csk_accept";
const ACCEPTED_BY_PARAMETERS: [(u32, &str); 2] = [(4, "accepted_4"), (2, "accepted_2")];

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
    let mut refusals = Vec::new();
    for tier in hooks.tiers() {
        let mut bpf = open(tier.storage())?;
        match attach_tier(&mut bpf, types, *tier) {
            Ok((calls, states)) => {
                let accepts = match tier {
                    Tier::RawSyscalls => Ok(Vec::new()),
                    Tier::Tracepoint | Tier::Fentry => attach_accept(&mut bpf, types),
                };
                let followed = Followed {
                    calls: Ok(calls),
                    accepts,
                    _states: states,
                };
                return Ok((bpf, Connections(Ok(followed))));
            }
            Err(reason) => refusals.push(reason),
        }
    }
    match hooks {
        ConnectionHooks::Off => Ok((open(Storage::Sockets)?, Connections(Err(SWITCHED_OFF)))),
        ConnectionHooks::LifeCycle => attach_life_cycle(types, SWITCHED_OFF, open),
        _ => attach_life_cycle(types, Unavailable::All(refusals), open),
    }
}

const SWITCHED_OFF: Unavailable = Unavailable::SwitchedOff("profile.connections");

/// Attaches the programs of one way to see socket calls, and those at changes of state. The
/// former come first, so that of every connection whose opening is seen all calls are seen too.
pub(super) fn attach_tier(
    bpf: &mut Ebpf,
    types: &KernelTypes,
    tier: Tier,
) -> Result<(Calls, Vec<Link>), Unavailable> {
    let switch = Hook::tracepoint(SWITCH, SWITCH);
    let hooks = [vec![switch], tier.hooks(types)?].concat();
    hook::load_all(bpf, types, &[hooks.as_slice(), &STATES].concat())?;
    let links = hook::attach_all(bpf, &hooks)?;
    let calls = Calls { tier, hooks, links };
    Ok((calls, hook::attach_all(bpf, &STATES)?))
}

fn attach_accept(bpf: &mut Ebpf, types: &KernelTypes) -> Result<Vec<Link>, Unavailable> {
    let hooks = [Hook::exit_by_parameters(
        types,
        ACCEPT,
        &ACCEPTED_BY_PARAMETERS,
    )?];
    hook::load_all(bpf, types, &hooks)?;
    hook::attach_all(bpf, &hooks)
}

fn attach_life_cycle(
    types: &KernelTypes,
    no_calls: Unavailable,
    open: impl Fn(Storage) -> Result<Ebpf, LoadError>,
) -> Result<(Ebpf, Connections), LoadError> {
    let attach = |storage| -> Result<(Ebpf, Result<Vec<Link>, Unavailable>), LoadError> {
        let mut bpf = open(storage)?;
        let attached = hook::load_all(&mut bpf, types, &STATES)
            .and_then(|()| hook::attach_all(&mut bpf, &STATES));
        Ok((bpf, attached))
    };
    let (mut bpf, attached) = match attach(Storage::Sockets)? {
        (_, Err(_)) => attach(Storage::Addresses)?,
        attached => attached,
    };
    let followed = attached.map(|states| Followed {
        calls: Err(no_calls),
        accepts: attach_accept(&mut bpf, types),
        _states: states,
    });
    Ok((bpf, Connections(followed)))
}
