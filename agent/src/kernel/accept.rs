//! The program that sees connections accepted: `bpf/accept.bpf.c`. It loads and fails
//! by itself.

use aya::programs::FExit;
use aya::{Btf, Ebpf};

use super::load::program;
use super::socket_calls::by_parameters;
use crate::causes::one_line as reason;

const ACCEPT: &str = "inet_csk_accept";

/// Loads and attaches the program for the end of the kernel's function; the error is
/// the kernel's reason.
pub(super) fn attach(bpf: &mut Ebpf, btf: &Btf) -> Result<(), String> {
    let name = by_parameters(ACCEPT, &[(4, "accepted_4"), (2, "accepted_2")])?;
    let accepted: &mut FExit = program(bpf, name).map_err(|error| reason(&error))?;
    let attached = accepted
        .load(ACCEPT, btf)
        .and_then(|()| accepted.attach().map(drop));
    attached.map_err(|error| format!("fexit/{ACCEPT}: {}", reason(&error)))
}
