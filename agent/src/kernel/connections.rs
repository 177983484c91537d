//! The programs that follow TCP connections. They load and fail by themselves:
//! the rest of the profile does not need them.

use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf};

use super::load::{LoadError, program};
use crate::causes::one_line as reason;

/// How much of connections is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follow {
    /// All that this kernel allows.
    #[default]
    All,
    /// Opening and closing, without hooks on socket calls: no turns, and a
    /// connection that its peer resets has no owner.
    LifeCycle,
    /// Nothing.
    Nothing,
}

/// What of connections is followed, with the reason where something is not.
#[derive(Clone, Debug)]
pub struct Connections {
    /// Opening, closing, TIME_WAIT.
    pub life_cycle: Result<(), String>,
    /// Socket calls: turns, and owners from the first call on.
    pub calls: Result<(), String>,
}

const STATE: (&str, &str) = ("tcp_state", "inet_sock_set_state");
const CALLS: [(&str, &str); 2] = [
    ("socket_received", "sock_recv_length"),
    ("socket_sent", "sock_send_length"),
];

/// Loads and attaches what can be. Socket calls come first, so that of every
/// connection whose opening is seen all calls are seen too.
pub(super) fn attach(bpf: &mut Ebpf, btf: &Btf, follow: Follow) -> Connections {
    let switched_off = || Err("switched off by profile.connections".to_owned());
    if follow == Follow::Nothing {
        return Connections {
            life_cycle: switched_off(),
            calls: switched_off(),
        };
    }
    let (state, tracepoint) = STATE;
    if let Err(reason) = load(bpf, btf, state, tracepoint) {
        return Connections {
            life_cycle: Err(reason.clone()),
            calls: Err(reason),
        };
    }
    let calls = if follow == Follow::LifeCycle {
        switched_off()
    } else {
        attach_calls(bpf, btf)
    };
    Connections {
        life_cycle: start(bpf, state),
        calls,
    }
}

fn attach_calls(bpf: &mut Ebpf, btf: &Btf) -> Result<(), String> {
    for (name, tracepoint) in CALLS {
        load(bpf, btf, name, tracepoint)?;
    }
    CALLS.iter().try_for_each(|(name, _)| start(bpf, name))
}

fn load(bpf: &mut Ebpf, btf: &Btf, name: &'static str, tracepoint: &str) -> Result<(), String> {
    let program: &mut BtfTracePoint = program(bpf, name).map_err(|error| reason(&error))?;
    program
        .load(tracepoint, btf)
        .map_err(|error| format!("tp_btf/{tracepoint}: {}", reason(&error)))
}

fn start(bpf: &mut Ebpf, name: &'static str) -> Result<(), String> {
    let program: Result<&mut BtfTracePoint, LoadError> = program(bpf, name);
    let program = program.map_err(|error| reason(&error))?;
    program
        .attach()
        .map(drop)
        .map_err(|error| format!("{name}: {}", reason(&error)))
}
