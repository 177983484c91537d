//! The program that sees connections accepted: `bpf/accept.bpf.c`. It loads and fails
//! by itself.

use aya::Ebpf;
use aya::programs::FExit;

use super::load::program;
use super::socket_calls::by_parameters;
use super::types::KernelTypes;
use tlsprof_common::causes::one_line as reason;

const ACCEPT: &str = "inet_csk_accept";

/// Loads and attaches the program for the end of the kernel's function; the error is
/// the kernel's reason.
pub(super) fn attach(bpf: &mut Ebpf, types: &KernelTypes) -> Result<(), String> {
    let name = by_parameters(types, ACCEPT, &[(4, "accepted_4"), (2, "accepted_2")])?;
    let accepted: &mut FExit = program(bpf, name).map_err(|error| reason(&error))?;
    let attached = accepted
        .load(ACCEPT, types.btf())
        .and_then(|()| accepted.attach().map(drop));
    attached.map_err(|error| format!("fexit/{ACCEPT}: {}", reason(&error)))
}
