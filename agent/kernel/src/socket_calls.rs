//! The ways in which the kernel tells of socket calls: `bpf/sockets.bpf.c`.

use std::collections::BTreeMap;
use std::thread;

use aya::Ebpf;
use aya::programs::{BtfTracePoint, FExit, Program, ProgramError};

use super::connections::Storage;
use super::load::program;
use super::types::KernelTypes;
use tlsprof_common::causes::one_line as reason;

/// A way to see socket calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// The tracepoints of all socket calls (Linux 6.3).
    Tracepoint,
    /// The ends of the kernel's functions for TCP (Linux 5.15).
    Fentry,
    /// The end of every system call of the host (Linux 5.10).
    RawSyscalls,
}

/// A program by its C function, and what in the kernel it is attached to.
struct Hook {
    program: &'static str,
    target: &'static str,
}

const TRACEPOINTS: &[Hook] = &[
    Hook {
        program: "socket_received",
        target: "sock_recv_length",
    },
    Hook {
        program: "socket_sent",
        target: "sock_send_length",
    },
];

const SYSTEM_CALLS: &[Hook] = &[Hook {
    program: "syscall_returned",
    target: "sys_exit",
}];

const SENT: Hook = Hook {
    program: "tcp_sent",
    target: "tcp_sendmsg",
};

const RECEIVE: &str = "tcp_recvmsg";

impl Tier {
    /// Best first. Where both of the first two load, the tracepoints are better:
    /// the kernel leaves out runs of programs on functions wherever one is
    /// preempted inside, of those on tracepoints from 7.1 on only
    /// (docs/journal/2026-11-21-hooks-on-socket-calls.md).
    pub const ALL: [Self; 3] = [Self::Tracepoint, Self::Fentry, Self::RawSyscalls];

    /// Where this way keeps the state of connections.
    pub(super) const fn storage(self) -> Storage {
        match self {
            Self::Tracepoint | Self::Fentry => Storage::Sockets,
            Self::RawSyscalls => Storage::Addresses,
        }
    }

    /// Loads its programs; the error is the kernel's reason.
    pub(super) fn load(self, bpf: &mut Ebpf, types: &KernelTypes) -> Result<(), String> {
        match self {
            Self::Tracepoint => load_tracepoints(bpf, types, TRACEPOINTS),
            Self::RawSyscalls => load_tracepoints(bpf, types, SYSTEM_CALLS),
            Self::Fentry => load_exits(bpf, types),
        }
    }

    /// Attaches its programs; the error is the kernel's reason.
    pub(super) fn start(self, bpf: &mut Ebpf, types: &KernelTypes) -> Result<(), String> {
        match self {
            Self::Tracepoint => start_tracepoints(bpf, TRACEPOINTS),
            Self::RawSyscalls => start_tracepoints(bpf, SYSTEM_CALLS),
            Self::Fentry => start_exits(bpf, types),
        }
    }
}

/// All at once: the kernel takes longer to check these than for all the rest of a start, and
/// checks several side by side.
fn load_tracepoints(bpf: &mut Ebpf, types: &KernelTypes, hooks: &[Hook]) -> Result<(), String> {
    let mut programs: BTreeMap<&str, &mut Program> = bpf.programs_mut().collect();
    thread::scope(|scope| {
        // Joined in the order of the hooks: where several are refused, the first one is reported.
        let loads: Vec<_> = hooks
            .iter()
            .filter_map(|hook| {
                let program = programs.remove(hook.program)?;
                Some(scope.spawn(move || load_tracepoint(program, types, hook)))
            })
            .collect();
        loads.into_iter().try_for_each(|load| {
            load.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}

fn load_tracepoint(program: &mut Program, types: &KernelTypes, hook: &Hook) -> Result<(), String> {
    let program: Result<&mut BtfTracePoint, ProgramError> = program.try_into();
    program
        .and_then(|program| program.load(hook.target, types.btf()))
        .map_err(|error| refused("tp_btf", hook, &error))
}

fn start_tracepoints(bpf: &mut Ebpf, hooks: &[Hook]) -> Result<(), String> {
    hooks.iter().try_for_each(|hook| {
        let program: &mut BtfTracePoint =
            program(bpf, hook.program).map_err(|error| reason(&error))?;
        let link = program.attach();
        link.map(drop)
            .map_err(|error| refused("tp_btf", hook, &error))
    })
}

fn load_exits(bpf: &mut Ebpf, types: &KernelTypes) -> Result<(), String> {
    for hook in exits(types)? {
        let program: &mut FExit = program(bpf, hook.program).map_err(|error| reason(&error))?;
        program
            .load(hook.target, types.btf())
            .map_err(|error| refused("fexit", &hook, &error))?;
    }
    Ok(())
}

fn start_exits(bpf: &mut Ebpf, types: &KernelTypes) -> Result<(), String> {
    for hook in exits(types)? {
        let program: &mut FExit = program(bpf, hook.program).map_err(|error| reason(&error))?;
        let link = program.attach();
        link.map_err(|error| refused("fexit", &hook, &error))?;
    }
    Ok(())
}

/// The result of a function comes after its parameters, so that there is a program
/// for each number of them.
fn exits(types: &KernelTypes) -> Result<[Hook; 2], String> {
    let received = Hook {
        program: by_parameters(
            types,
            RECEIVE,
            &[
                (6, "tcp_received_6"),
                (5, "tcp_received_5"),
                (4, "tcp_received_4"),
            ],
        )?,
        target: RECEIVE,
    };
    Ok([received, SENT])
}

/// The program for the number of parameters that a function of this kernel has.
pub(super) fn by_parameters(
    types: &KernelTypes,
    function: &str,
    programs: &[(u32, &'static str)],
) -> Result<&'static str, String> {
    let count = types
        .parameters(function)
        .ok_or_else(|| format!("the kernel does not describe {function}()"))?;
    let fits = programs.iter().find(|(parameters, _)| *parameters == count);
    fits.map(|(_, program)| *program)
        .ok_or_else(|| format!("the kernel's {function}() has {count} parameters"))
}

fn refused(kind: &str, hook: &Hook, error: &ProgramError) -> String {
    format!("{kind}/{}: {}", hook.target, reason(error))
}
