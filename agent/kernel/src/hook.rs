//! Programs at hooks of the kernel.

use std::collections::BTreeMap;
use std::thread;

use aya::Ebpf;
use aya::programs::fexit::FExitLink;
use aya::programs::tp_btf::BtfTracePointLink;
use aya::programs::{Program, ProgramError};

use super::error::Unavailable;
use super::object::any_program;
use super::place::Place;
use super::types::KernelTypes;

/// The program runs at its hook until this is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "held, and dropped")]
pub(super) enum Link {
    Tracepoint(BtfTracePointLink),
    Exit(FExitLink),
}

/// A program by its C function, and where in the kernel it is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hook {
    program: &'static str,
    place: Place,
}

impl Hook {
    pub(super) const fn tracepoint(program: &'static str, tracepoint: &'static str) -> Self {
        let place = Place::Tracepoint(tracepoint);
        Self { program, place }
    }

    pub(super) const fn exit(program: &'static str, function: &'static str) -> Self {
        let place = Place::Exit(function);
        Self { program, place }
    }

    /// The end of a function whose number of parameters differs between kernels: the result
    /// comes after the parameters, so that there is a program for each number.
    pub(super) fn exit_by_parameters(
        types: &KernelTypes,
        function: &'static str,
        programs: &[(u32, &'static str)],
    ) -> Result<Self, Unavailable> {
        let parameters = types
            .parameters(function)
            .ok_or(Unavailable::NoFunction(function))?;
        let fits = programs.iter().find(|(count, _)| *count == parameters);
        fits.map(|(_, program)| Self::exit(program, function))
            .ok_or(Unavailable::Parameters {
                function,
                parameters,
            })
    }

    fn load(&self, program: &mut Program, types: &KernelTypes) -> Result<(), Unavailable> {
        let loaded = match (self.place, program) {
            (Place::Tracepoint(name), Program::BtfTracePoint(program)) => {
                program.load(name, types.btf())
            }
            (Place::Exit(function), Program::FExit(program)) => program.load(function, types.btf()),
            _ => Err(ProgramError::UnexpectedProgramType),
        };
        loaded.map_err(|error| self.refused(error))
    }

    fn attach(&self, program: &mut Program) -> Result<Link, Unavailable> {
        let attached = match program {
            Program::BtfTracePoint(program) => program
                .attach()
                .and_then(|id| program.take_link(id))
                .map(Link::Tracepoint),
            Program::FExit(program) => program
                .attach()
                .and_then(|id| program.take_link(id))
                .map(Link::Exit),
            _ => Err(ProgramError::UnexpectedProgramType),
        };
        attached.map_err(|error| self.refused(error))
    }

    const fn refused(&self, error: ProgramError) -> Unavailable {
        let place = self.place;
        Unavailable::Refused { place, error }
    }
}

/// Loads the programs in parallel: the verifier needs longer for these than everything else
/// at a start.
pub(super) fn load_all(
    bpf: &mut Ebpf,
    types: &KernelTypes,
    hooks: &[Hook],
) -> Result<(), Unavailable> {
    let mut programs: BTreeMap<&str, &mut Program> = bpf.programs_mut().collect();
    thread::scope(|scope| {
        // Joined in the order of the hooks: where several are refused, the first one is reported.
        let loads: Vec<_> = hooks
            .iter()
            .filter_map(|hook| {
                let program = programs.remove(hook.program)?;
                Some(scope.spawn(move || hook.load(program, types)))
            })
            .collect();
        loads.into_iter().try_for_each(|load| {
            load.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}

/// Attaches the loaded programs in the order of the hooks.
pub(super) fn attach_all(bpf: &mut Ebpf, hooks: &[Hook]) -> Result<Vec<Link>, Unavailable> {
    hooks
        .iter()
        .map(|hook| hook.attach(any_program(bpf, hook.program)?))
        .collect()
}
