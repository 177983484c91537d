//! What is probed in a TLS library, as data.

use tlsprof_common::{Role, Step};

/// A BPF program on a uprobe, by the name of its C function. Programs are attached in the
/// order of their values: what ends or explains a call before what begins it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Program {
    stage: Stage,
    name: &'static str,
}

/// When a program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Stage {
    Ends,
    Explains,
    Begins,
}

impl Program {
    /// Return of a function that began something at its entry.
    pub(crate) const fn ends(name: &'static str) -> Self {
        Self {
            stage: Stage::Ends,
            name,
        }
    }

    /// Something inside a call, or about its object.
    pub const fn explains(name: &'static str) -> Self {
        Self {
            stage: Stage::Explains,
            name,
        }
    }

    /// Entry of a function that handshakes run in.
    pub(crate) const fn begins(name: &'static str) -> Self {
        Self {
            stage: Stage::Begins,
            name,
        }
    }

    /// Name of its C function.
    pub const fn function_name(self) -> &'static str {
        self.name
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
    /// OpenSSL's internal handshake function of that role, derived from its
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The step that all of its time is in, whoever calls it.
    pub(crate) step: Option<Step>,
    /// What it belongs to.
    pub group: Group,
    /// Whether it must be there.
    pub need: Need,
    /// How many integer arguments the entry program reads; placement keeps
    /// these registers intact.
    pub arguments: usize,
}

/// The cookie of a step's probes (`enum tlsprof_step`).
pub(crate) const fn step_cookie(step: Step) -> u64 {
    step as u64
}

/// The cookie of the state machine's probes (`enum tlsprof_role`).
pub(crate) const fn role_cookie(role: Role) -> u64 {
    match role {
        Role::Server => 1,
        Role::Client => 2,
    }
}
