//! What is probed in a TLS library, as data.

use tlsprof_common::{Role, Step};

/// A BPF program of `bpf/handshakes.bpf.c`, in the order in which programs are
/// attached: what ends or explains a call before what begins it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Program {
    /// Return of a function that belongs to a step; cookie: step.
    StepExit,
    /// Entry of a libcrypto function that belongs to a step; cookie: step.
    StepEnter,
    /// `EVP_PKEY_CTX_set_group_name`: argument 1 names the key exchange group.
    GroupNamed,
    /// 1.1.1: `EVP_PKEY_derive_set_peer`: the next derive of that context is a key exchange.
    PeerSet,
    /// The library put an error on its queue (3.x: lib and reason are arguments 0 and 1).
    ErrorRaised,
    /// The same in 1.1.1 (`ERR_put_error`: lib and reason are arguments 0 and 2).
    ErrorRaisedV1,
    /// Return of the handshake state machine; cookie: role.
    HandshakeExit,
    /// `SSL_clear`: called inside the state machine it marks the first call of
    /// a new handshake.
    ConnectionClear,
    /// `SSL_free`: an unfinished handshake of that object is abandoned.
    ConnectionFree,
    /// Entry of the handshake state machine; cookie: role.
    HandshakeEnter,
}

impl Program {
    /// Name of its C function.
    pub const fn function_name(self) -> &'static str {
        match self {
            Self::StepExit => "step_exit",
            Self::StepEnter => "step_enter",
            Self::GroupNamed => "group_named",
            Self::PeerSet => "peer_set",
            Self::ErrorRaised => "error_raised",
            Self::ErrorRaisedV1 => "error_raised_v1",
            Self::HandshakeExit => "handshake_exit",
            Self::ConnectionClear => "connection_clear",
            Self::ConnectionFree => "connection_free",
            Self::HandshakeEnter => "handshake_enter",
        }
    }
}

/// How a function is found in the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locate {
    /// By the first of these symbols that is there.
    Symbol(&'static [&'static str]),
    /// By the jump through which the image calls the first of these functions,
    /// of another image, that it imports: only its own calls pass it.
    Import(&'static [&'static str]),
    /// The library's internal handshake function of that role, derived from its
    /// `SSL_METHOD` tables (see `attach::state_machine`).
    StateMachine(Role),
}

/// Probes that are attached and released together; in the order of attaching: a
/// handshake must not begin before its steps can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Key exchange, signing, verification, RSA decryption.
    Steps,
    /// Key derivation: 20 calls a TLS 1.3 handshake, attached in windows.
    KeyDerivation,
    /// Errors that anything raises in a libcrypto: attached once there is a
    /// libssl whose own calls cannot be probed.
    AllErrors,
    /// Beginning, end and outcome of handshakes. Always attached.
    Handshakes,
}

/// Whether the library can be profiled without this function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Without it nothing of the library is attached.
    Required,
    /// Without it one detail is missing.
    Optional,
}

/// One probed function.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Name shown to people.
    pub name: &'static str,
    /// How it is found.
    pub locate: Locate,
    /// Program at its entry.
    pub entry: Option<Program>,
    /// Program at its return.
    pub exit: Option<Program>,
    /// Attach cookie of both.
    pub cookie: u64,
    /// What it belongs to.
    pub group: Group,
    /// Whether it must be there.
    pub need: Need,
    /// How many integer arguments the entry program reads; placement keeps
    /// these registers intact.
    pub arguments: usize,
}

/// The cookie of a step's probes (`enum tlsprof_step`).
pub const fn step_cookie(step: Step) -> u64 {
    step as u64
}

/// The cookie of the state machine's probes (`enum tlsprof_role`).
pub const fn role_cookie(role: Role) -> u64 {
    match role {
        Role::Server => 1,
        Role::Client => 2,
    }
}
