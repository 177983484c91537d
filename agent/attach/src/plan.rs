//! The probe sites of one image.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::placement::{self, Code, Needs, Placement, PlacementError};
use super::state_machine::{self, StateMachine, StateMachineError};
use tlsprof_discover::elf::{ElfError, ElfView, ImportError, Symbol, Symbols};
use tlsprof_library::Found;
use tlsprof_library::spec::{Function, Locate, Need};

/// One place in an image where probes go.
#[derive(Clone, Debug)]
pub struct Site {
    /// What is probed.
    pub(crate) function: &'static Function,
    /// Virtual address of the function, as linked.
    pub address: u64,
    /// Offset in the file of the chosen instruction: where the uprobe of
    /// `function.entry` and the uretprobe of `function.exit` go.
    pub file_offset: u64,
    /// Why there.
    pub(crate) placement: Placement,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, .. } = self;
        let name = format!("{}+{}", function.name, self.placement.offset_in_function);
        write!(
            f,
            "{name:<32} {:#010x}  {}",
            self.file_offset, self.placement
        )
    }
}

/// A function that is not probed, and why.
#[derive(Clone, Debug)]
pub struct Missing {
    /// The function.
    pub(crate) function: &'static Function,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<32} not probed: {}", self.function.name, self.reason)
    }
}

/// All probe sites of an image.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where probes go.
    pub sites: Vec<Site>,
    /// Functions that the image lacks: details that will be missing.
    pub missing: Vec<Missing>,
}

impl Plan {
    /// Whether calls of this image to another cannot be probed: without
    /// [`Group::AllErrors`](tlsprof_library::spec::Group::AllErrors), failed handshakes
    /// would be told as abandoned.
    pub(crate) fn lacks_imports(&self) -> bool {
        let mut missing = self.missing.iter();
        missing.any(|missing| matches!(missing.function.locate, Locate::Import(_)))
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sites
            .iter()
            .try_for_each(|site| writeln!(f, "{site}"))?;
        self.missing
            .iter()
            .try_for_each(|missing| writeln!(f, "{missing}"))
    }
}

/// Why an image cannot be profiled.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The image could not be read.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// A function that profiling cannot do without cannot be probed.
    #[error("{function} cannot be probed")]
    Required {
        /// The function.
        function: &'static str,
        /// What is wrong.
        source: SiteError,
    },
    /// None of the functions is there.
    #[error("the image has none of the functions to probe")]
    Nothing,
}

/// Why one function cannot be probed.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// The image does not define it.
    #[error("no symbol {0}")]
    NoSymbol(&'static str),
    /// The image's calls of it cannot be found.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The functions that run handshakes cannot be found.
    #[error("the handshake functions cannot be found: {0}")]
    StateMachine(String),
    /// The image could not be read.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// No probe can go into the function.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// The linker merged it with another function.
    #[error("its code is also that of {0}")]
    SameCode(&'static str),
}

/// Plans the probes for an image that holds the library `found`.
///
/// # Errors
/// See [`PlanError`]. There is no plan without all required functions.
pub fn plan(image: &ElfView, found: &Found) -> Result<Plan, PlanError> {
    let planner = Planner::new(image, &found.functions)?;
    let mut plan = Plan {
        sites: Vec::new(),
        missing: Vec::new(),
    };
    let mut taken = BTreeMap::new();
    for function in found.functions.iter().copied() {
        let site = planner.site(function).and_then(|site| {
            match taken.insert((site.file_offset, function.entry), function.name) {
                Some(other) => Err(SiteError::SameCode(other)),
                None => Ok(site),
            }
        });
        match site {
            Ok(site) => plan.sites.push(site),
            Err(source) if function.need == Need::Required => {
                return Err(PlanError::Required {
                    function: function.name,
                    source,
                });
            }
            Err(error) => plan.missing.push(Missing {
                function,
                reason: error.to_string(),
            }),
        }
    }
    match plan.sites.is_empty() {
        true => Err(PlanError::Nothing),
        false => Ok(plan),
    }
}

/// What is known of an image while its sites are chosen.
struct Planner<'a> {
    image: &'a ElfView,
    symbols: Symbols,
    state_machine: Option<Result<StateMachine, StateMachineError>>,
}

impl<'a> Planner<'a> {
    fn new(image: &'a ElfView, functions: &[&'static Function]) -> Result<Self, ElfError> {
        let mut names = BTreeSet::new();
        let mut handshakes = false;
        for function in functions {
            match function.locate {
                Locate::Symbol(symbols) | Locate::Import(symbols) => names.extend(symbols),
                Locate::StateMachine(_) => handshakes = true,
            }
        }
        if handshakes {
            names.extend(state_machine::SYMBOLS);
        }
        let symbols = image.symbols(&names.into_iter().collect::<Vec<_>>())?;
        let state_machine = handshakes.then(|| state_machine::find(image, &symbols));
        Ok(Self {
            image,
            symbols,
            state_machine,
        })
    }

    fn site(&self, function: &'static Function) -> Result<Site, SiteError> {
        let Symbol { address, size } = self.locate(function)?;
        let size = match size {
            0 => self.image.function_extent(address)?,
            size => Some(size),
        };
        let code = self.image.code(address, size.unwrap_or(PROLOGUE))?;
        let code = Code {
            bytes: &code,
            address,
            whole: size.is_some_and(|size| size == code.len() as u64),
        };
        let needs = Needs {
            arguments: function.arguments,
            return_address: function.exit.is_some(),
        };
        let placement = placement::place(self.image.arch(), code, needs)?;
        let chosen = address.saturating_add(placement.offset_in_function);
        let file_offset = self.image.file_offset(chosen).ok_or(ElfError::Unmapped {
            what: "the probed instruction",
            address: chosen,
        })?;
        Ok(Site {
            function,
            address,
            file_offset,
            placement,
        })
    }

    fn locate(&self, function: &'static Function) -> Result<Symbol, SiteError> {
        match (function.locate, &self.state_machine) {
            (Locate::Symbol(names), _) => {
                let mut found = names.iter().filter_map(|name| self.symbols.get(name));
                found.next().ok_or(SiteError::NoSymbol(function.name))
            }
            (Locate::Import(names), _) => {
                let mut imported = names.iter().filter(|name| self.symbols.imports(name));
                let name = imported.next().ok_or(ImportError::NotImported)?;
                Ok(self.image.import_jump(&self.symbols, name)?)
            }
            (Locate::StateMachine(role), Some(Ok(found))) => {
                let address = found.address(role);
                let named = self.symbols.get(function.name);
                let size = named.filter(|named| named.address == address);
                let size = size.map_or(0, |named| named.size);
                Ok(Symbol { address, size })
            }
            (Locate::StateMachine(_), Some(Err(error))) => {
                Err(SiteError::StateMachine(error.to_string()))
            }
            (Locate::StateMachine(_), None) => Err(SiteError::NoSymbol(function.name)),
        }
    }
}

/// Code that is read of a function whose end is unknown.
const PROLOGUE: u64 = 64;

#[cfg(test)]
mod tests;
