//! Places in the kernel where programs run.

use std::fmt;

/// A place in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A tracepoint.
    Tracepoint(&'static str),
    /// The end of a function.
    Exit(&'static str),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tracepoint(name) => write!(f, "tp_btf/{name}"),
            Self::Exit(function) => write!(f, "fexit/{function}"),
        }
    }
}
