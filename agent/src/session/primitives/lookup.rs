//! Looks functions up in images, in a thread without privileges: an image of hundreds of megabytes
//! takes a second, in which evidence would be waiting. What is read are foreign bytes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, channel, sync_channel};
use std::thread;
use std::time::Duration;

use crate::session::spots::readable::readable;
use tlsprof_common::causes::one_line;
use tlsprof_common::frame::FrameRule;
use tlsprof_common::{ImageId, Step, privilege};
use tlsprof_discover::elf::{Arch, Around, Bounds, ElfError, ElfView};
use tlsprof_discover::library::step_of;
use tlsprof_discover::perf_map::functions_in;
use tlsprof_evidence::fingerprint::Machine;
use tlsprof_evidence::primitive::{
    Evidence, MAX_FUNCTION, Primitive, by_code, by_name, identify_all,
};

/// Where more than this part of the functions have names, the others are not worth a look at all.
const FEW_NAMES: usize = 8;

/// A part of a file that is one function, or one place that belongs to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// First offset in the file.
    pub(super) start: u64,
    /// Offset after the last one.
    pub(super) end: u64,
    /// None where neither a name nor the code of the whole function shows it.
    pub(super) primitive: Option<(Primitive, Evidence)>,
    /// What it is called for, by its name.
    pub(super) step: Option<Step>,
}

/// What is known of one place in code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Site {
    /// How the state of the function's caller is restored there.
    pub(super) rule: Option<FrameRule>,
    /// If it is the end of a call that says where it leads: offset in the file.
    pub(super) target: Option<u64>,
    /// What the function is called for that the call leads to.
    pub(super) step: Option<Step>,
}

/// What is wanted of a file.
pub(super) struct Unknown {
    pub(super) image: ImageId,
    pub(super) file: File,
    /// It is a map of code that a process compiled itself: offsets are addresses.
    pub(super) is_map: bool,
    /// Offsets whose functions are not known.
    pub(super) functions: Vec<u64>,
    /// Offsets of places that were not looked at, in whatever function.
    pub(super) sites: Vec<u64>,
    /// Whether all of its functions were looked at once.
    pub(super) surveyed: bool,
}

/// What is found of an image.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) extents: Vec<Extent>,
    /// By their offsets in the file.
    pub(super) sites: BTreeMap<u64, Site>,
    /// Those of all its functions are among them that are identified, if most have no names.
    pub(super) surveyed: bool,
}

type Question = Vec<Unknown>;
pub(super) type Answer = Vec<(ImageId, Found)>;

/// The thread, from outside.
#[derive(Debug)]
pub(super) struct Lookup {
    /// None if there is no thread.
    questions: Option<SyncSender<Question>>,
    answers: Receiver<Answer>,
}

impl Lookup {
    pub(super) fn start() -> Self {
        let (questions, asked) = sync_channel::<Question>(1);
        let (sender, answers) = channel();
        let work = move || {
            if let Err(error) = privilege::give_up_all() {
                tracing::warn!(%error, "a thread that reads images keeps its privileges");
            }
            for unknown in asked {
                let found = unknown.into_iter().map(look_up).collect();
                if sender.send(found).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("tlsprof-names".to_owned());
        let questions = match thread.spawn(work) {
            Ok(_) => Some(questions),
            Err(error) => {
                tracing::warn!(%error, "functions are not looked up by name: cannot start the thread");
                None
            }
        };
        Self { questions, answers }
    }

    /// False if it cannot be asked now.
    pub(super) fn ask(&self, question: Question) -> bool {
        let questions = self.questions.as_ref();
        questions.is_some_and(|questions| questions.try_send(question).is_ok())
    }

    pub(super) fn answer(&self) -> Option<Answer> {
        match self.answers.try_recv() {
            Ok(answer) => Some(answer),
            Err(TryRecvError::Empty) => None,
            // No more will come: nothing is known.
            Err(TryRecvError::Disconnected) => Some(Answer::new()),
        }
    }

    pub(super) fn await_answer(&self, patience: Duration) -> Option<Answer> {
        self.answers.recv_timeout(patience).ok()
    }
}

/// A panic over foreign bytes must not end the thread.
fn look_up(unknown: Unknown) -> (ImageId, Found) {
    let Unknown {
        image,
        file,
        is_map,
        functions,
        sites,
        surveyed,
    } = unknown;
    let found = catch_unwind(AssertUnwindSafe(|| match is_map {
        true => compiled(&file, &functions).map_err(|source| ElfError::Read {
            what: "a map of compiled code",
            offset: 0,
            source,
        }),
        false => look_into(file, &functions, &sites, surveyed),
    }));
    let mut found = match found {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => {
            tracing::debug!(error = one_line(&error), "an image has no names");
            Found::default()
        }
        Err(_) => Found::default(),
    };
    let is_found = |offset: &u64| {
        let mut extents = found.extents.iter();
        extents.any(|extent| (extent.start..extent.end).contains(offset))
    };
    let nameless = functions.iter().filter(|offset| !is_found(offset));
    let nameless = nameless.map(|offset| Extent {
        start: *offset,
        end: offset.saturating_add(1),
        primitive: None,
        step: None,
    });
    let nameless: Vec<Extent> = nameless.collect();
    found.extents.extend(nameless);
    for offset in sites {
        found.sites.entry(offset).or_default();
    }
    (image, found)
}

/// The functions that these offsets are in, as far as they have names, or bounds. If arithmetic on big numbers
/// is among them, also the functions around it: these have no sign of their own. The same if the image has code without bounds.
pub(super) fn look_into(
    file: File,
    functions: &[u64],
    sites: &[u64],
    surveyed: bool,
) -> Result<Found, ElfError> {
    let view = ElfView::open(file)?;
    let addresses = functions
        .iter()
        .filter_map(|offset| view.code_address(*offset));
    let addresses: Vec<u64> = addresses.collect();
    let functions = view.functions_at(&addresses)?;
    let nameless: Vec<u64> = addresses
        .iter()
        .copied()
        .filter(|address| !functions.contains_key(address))
        .collect();
    let extents = functions.into_values().filter_map(|function| {
        let bounds = (function.start, function.start.saturating_add(function.size));
        let primitive = by_name(&readable(&function.name));
        let extent = extent(&view, bounds, Some((primitive, Evidence::Name)))?;
        let step = step_of(&view, &function.name);
        Some(Extent { step, ..extent })
    });
    let mut unique: BTreeMap<u64, Extent> = extents.map(|one| (one.start, one)).collect();
    let around = around(&view, &nameless);
    unique.extend(without_names(&view, &around));
    let big_number = Some((Primitive::BigNumber, Evidence::Instructions));
    let has_big_numbers = unique.values().any(|one| one.primitive == big_number);
    // AArch64 assembly has no unwind records: a survey finds it through its callers.
    let is_gap = |around: &Around| matches!(around, Around::Gap(_));
    let has_gaps = view.arch() == Arch::Aarch64 && around.iter().any(is_gap);
    let survey_now = !surveyed && (has_big_numbers || has_gaps);
    if survey_now {
        unique.extend(surveyed_functions(&view, has_gaps)?);
    }
    Ok(Found {
        extents: unique.into_values().collect(),
        sites: sites_at(&view, sites)?,
        surveyed: survey_now,
    })
}

/// The functions of a map that these addresses are in. Stubs of Java have one name together, which says nothing.
fn compiled(map: &File, addresses: &[u64]) -> io::Result<Found> {
    let functions = functions_in(map, addresses)?.into_values();
    let functions = functions.filter(|function| !function.name.starts_with("StubRoutines"));
    let extents = functions.map(|function| Extent {
        start: function.start,
        end: function.end,
        primitive: Some((by_name(function.own_name()), Evidence::Name)),
        step: None,
    });
    Ok(Found {
        extents: extents.collect(),
        ..Found::default()
    })
}

fn extent(
    view: &ElfView,
    (first, end): Bounds,
    primitive: Option<(Primitive, Evidence)>,
) -> Option<Extent> {
    let start = view.file_offset(first)?;
    Some(Extent {
        start,
        end: start.saturating_add(end - first),
        primitive,
        step: None,
    })
}

fn sites_at(view: &ElfView, offsets: &[u64]) -> Result<BTreeMap<u64, Site>, ElfError> {
    let addresses = offsets
        .iter()
        .filter_map(|offset| Some((*offset, view.code_address(*offset)?)));
    let addresses: Vec<(u64, u64)> = addresses.collect();
    let all: Vec<u64> = addresses.iter().map(|(_, address)| *address).collect();
    let rules = view.frame_rules(&all)?;
    let returns: Vec<u64> = all.iter().map(|at| at.saturating_add(1)).collect();
    let calls = view.calls(&returns)?;
    let sites = addresses.into_iter().map(|(offset, address)| {
        let call = calls.get(&address.saturating_add(1));
        let target = call.and_then(|call| call.target);
        let name = call.and_then(|call| call.name.as_deref());
        let site = Site {
            rule: rules.get(&address).copied(),
            target: target.and_then(|target| view.file_offset(target)),
            step: name.and_then(|name| step_of(view, name)),
        };
        (offset, site)
    });
    Ok(sites.collect())
}

/// Of an image in which few functions have names, or some have no bounds, those without a name that are identified by
/// the code of all.
fn surveyed_functions(view: &ElfView, has_gaps: bool) -> Result<BTreeMap<u64, Extent>, ElfError> {
    let Some(machine) = machine(view) else {
        return Ok(BTreeMap::new());
    };
    let all = view.all_function_bounds()?;
    let starts: Vec<u64> = all.iter().map(|(first, _)| *first).collect();
    let named = view.names_at(&starts)?;
    if named.len() > all.len() / FEW_NAMES && !has_gaps {
        return Ok(BTreeMap::new());
    }
    let found = identify_all(machine, &all, |at, size| view.constants(at, size)).into_iter();
    let extents = found.filter_map(|(bounds, primitive)| {
        let extent = extent(view, bounds, Some((primitive, Evidence::Instructions)))?;
        (!named.contains_key(&bounds.0)).then_some((extent.start, extent))
    });
    Ok(extents.collect())
}

fn around(view: &ElfView, addresses: &[u64]) -> Vec<Around> {
    let mut around = view.functions_around(addresses).unwrap_or_else(|error| {
        tracing::debug!(
            error = one_line(&error),
            "an image has no bounds of functions"
        );
        Vec::new()
    });
    around.dedup();
    around
}

/// Functions that only the unwind table knows, by their code; and gaps between them, so that these are not
/// looked up for each address in them.
fn without_names(view: &ElfView, around: &[Around]) -> BTreeMap<u64, Extent> {
    let extents = around.iter().filter_map(|around| {
        let (bounds, primitive) = match *around {
            Around::Function(bounds) => (bounds, by_its_code(view, bounds)),
            Around::Gap(bounds) => (bounds, None),
        };
        let primitive = primitive.map(|primitive| (primitive, Evidence::Instructions));
        let extent = extent(view, bounds, primitive)?;
        Some((extent.start, extent))
    });
    extents.collect()
}

fn by_its_code(view: &ElfView, (first, end): Bounds) -> Option<Primitive> {
    let size = end.saturating_sub(first).min(MAX_FUNCTION as u64);
    let code = view.code(first, size).ok()?;
    by_code(machine(view)?, &code, first, |at, size| {
        view.constants(at, size)
    })
}

fn machine(view: &ElfView) -> Option<Machine> {
    match view.arch() {
        Arch::X86_64 => Some(Machine::X86_64),
        Arch::Aarch64 => Some(Machine::Aarch64),
        Arch::Other(_) => None,
    }
}
