//! Why the kernel side, or a part of it, cannot be set up.

use std::io;

use aya::maps::MapError;
use aya::programs::ProgramError;
use thiserror::Error;

use super::lockdown::Lockdown;
use super::place::Place;
use super::types::TypesError;
use tlsprof_common::causes::one_line;
use tlsprof_common::privilege;

/// Why the kernel side cannot be set up.
#[derive(Debug, Error)]
pub enum LoadError {
    /// No rights to load BPF programs.
    #[error("no permission to load BPF programs: {}", privilege::refusal())]
    Permission,
    /// The kernel's types are not known.
    #[error(transparent)]
    Types(#[from] TypesError),
    /// The kernel is locked down, so that no program may read its memory.
    #[error(
        "this kernel is locked down for confidentiality (kernel_lockdown(7)): BPF programs \
         cannot read its memory, and tlsprof cannot work. Boot it with lockdown=integrity or without \
         lockdown"
    )]
    Lockdown,
    /// The object was refused as a whole.
    #[error("the kernel refused tlsprof's BPF maps")]
    Maps(#[source] anyhow::Error),
    /// One program was refused.
    #[error("the kernel refused the BPF program {program}")]
    Program {
        /// Name of its C function.
        program: String,
        /// aya's error.
        source: anyhow::Error,
    },
}

impl LoadError {
    /// The same in a few words without the system's own, where it quotes them.
    pub const fn in_short(&self) -> Option<&'static str> {
        match self {
            Self::Permission => Some("no permission to load BPF programs"),
            Self::Maps(_) | Self::Program { .. } => Some(REFUSED),
            Self::Types(_) | Self::Lockdown => None,
        }
    }
}

/// What the kernel's refusal comes down to: there is nothing that the user could change.
const REFUSED: &str = "refused by this kernel";

/// Why an optional part is missing; the rest of a profile works without it.
#[derive(Debug, Error)]
pub enum Unavailable {
    /// The user does not want it.
    #[error("switched off by {0}")]
    SwitchedOff(&'static str),
    /// Nobody has started it yet.
    #[error("not started")]
    NotStarted,
    /// It cannot be loaded.
    #[error("{}", one_line(.0))]
    Load(#[from] LoadError),
    /// The kernel refused a program at a hook.
    #[error("{place}: {}", one_line(.error))]
    Refused {
        /// The hook.
        place: Place,
        /// aya's error.
        error: ProgramError,
    },
    /// The kernel's types lack a function.
    #[error("the kernel does not describe {0}()")]
    NoFunction(&'static str),
    /// No program fits a function of this kernel.
    #[error("the kernel's {function}() has {parameters} parameters")]
    Parameters {
        /// The function.
        function: &'static str,
        /// How many parameters it has here.
        parameters: u32,
    },
    /// None of several ways works: the reason for each.
    #[error("{}", joined(.0))]
    All(Vec<Self>),
}

impl Unavailable {
    /// The same in a few words without the system's own, where it quotes them.
    pub fn in_short(&self) -> Option<&'static str> {
        match self {
            Self::Load(error) => error.in_short(),
            Self::Refused { .. } | Self::NoFunction(_) | Self::Parameters { .. } => Some(REFUSED),
            Self::All(reasons) => reasons.iter().find_map(Self::in_short),
            Self::SwitchedOff(_) | Self::NotStarted => None,
        }
    }
}

impl From<TypesError> for Unavailable {
    fn from(error: TypesError) -> Self {
        Self::Load(error.into())
    }
}

fn joined(reasons: &[Unavailable]) -> String {
    let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    reasons.join("; ")
}

/// Whether the system refused permission.
pub(super) fn denied(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| {
        error
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    })
}

/// A map that cannot be opened.
pub(super) fn maps(error: MapError) -> LoadError {
    LoadError::Maps(error.into())
}

/// The error for a program that the kernel refused.
pub(super) fn refused(program: &str) -> impl Fn(ProgramError) -> LoadError + use<> {
    let program = program.to_owned();
    move |error| {
        if Lockdown::read() == Some(Lockdown::Confidentiality) {
            LoadError::Lockdown
        } else if denied(&error) {
            LoadError::Permission
        } else {
            LoadError::Program {
                program: program.clone(),
                source: error.into(),
            }
        }
    }
}
