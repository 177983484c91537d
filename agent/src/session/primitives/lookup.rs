//! Looks functions up in images, in a thread without privileges: an image of hundreds of megabytes
//! takes a second, in which evidence would be waiting. What is read are foreign bytes.

use std::collections::BTreeMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use crate::session::spots::readable::readable;
use tlsprof_common::causes::one_line;
use tlsprof_common::{ImageId, privilege};
use tlsprof_discover::elf::{ElfError, ElfView};
use tlsprof_evidence::primitive::{Evidence, MAX_FUNCTION, Primitive, by_code, by_name};

/// Questions that wait; more are not asked, and their code is not identified by name.
const MAX_QUESTIONS: usize = 16;

/// A part of a file that is one function, or one place that belongs to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// First offset in the file.
    pub(super) start: u64,
    /// Offset after the last one.
    pub(super) end: u64,
    /// None where neither a name nor the code of the whole function shows it.
    pub(super) primitive: Option<(Primitive, Evidence)>,
}

/// Offsets in a file whose functions are wanted.
pub(super) struct Unknown {
    pub(super) image: ImageId,
    pub(super) file: File,
    pub(super) offsets: Vec<u64>,
}

/// By its number.
type Question = (u64, Vec<Unknown>);
pub(super) type Answer = (u64, Vec<(ImageId, Vec<Extent>)>);

/// The thread, from outside.
#[derive(Debug)]
pub(super) struct Lookup {
    /// None if there is no thread.
    questions: Option<SyncSender<Question>>,
    answers: Receiver<Answer>,
}

impl Lookup {
    pub(super) fn start() -> Self {
        let (questions, asked) = sync_channel::<Question>(MAX_QUESTIONS);
        let (sender, answers) = channel();
        let work = move || {
            if let Err(error) = privilege::give_up_all() {
                tracing::warn!(%error, "a thread that reads images keeps its privileges");
            }
            for (number, unknown) in asked {
                let found = unknown.into_iter().map(look_up).collect();
                if sender.send((number, found)).is_err() {
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
    pub(super) fn ask(&self, number: u64, unknown: Vec<Unknown>) -> bool {
        let questions = self.questions.as_ref();
        questions.is_some_and(|questions| questions.try_send((number, unknown)).is_ok())
    }

    pub(super) fn answer(&self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }

    pub(super) fn await_answer(&self, patience: Duration) -> Option<Answer> {
        self.answers.recv_timeout(patience).ok()
    }
}

/// A panic over foreign bytes must not end the thread.
fn look_up(unknown: Unknown) -> (ImageId, Vec<Extent>) {
    let Unknown {
        image,
        file,
        offsets,
    } = unknown;
    let found = catch_unwind(AssertUnwindSafe(|| functions(file, &offsets)));
    let named = match found {
        Ok(Ok(named)) => named,
        Ok(Err(error)) => {
            tracing::debug!(error = one_line(&error), "an image has no names");
            Vec::new()
        }
        Err(_) => Vec::new(),
    };
    let is_named = |offset: &u64| {
        let mut named = named.iter();
        named.any(|extent| (extent.start..extent.end).contains(offset))
    };
    let nameless = offsets.iter().filter(|offset| !is_named(offset));
    let nameless = nameless.map(|offset| Extent {
        start: *offset,
        end: offset.saturating_add(1),
        primitive: None,
    });
    let nameless: Vec<Extent> = nameless.collect();
    (image, [named, nameless].concat())
}

/// The functions that these offsets are in, as far as they have names, or bounds.
pub(super) fn functions(file: File, offsets: &[u64]) -> Result<Vec<Extent>, ElfError> {
    let view = ElfView::open(file)?;
    let addresses = offsets
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
        let start = view.file_offset(function.start)?;
        let end = start.saturating_add(function.size);
        let primitive = by_name(&readable(&function.name));
        let primitive = Some((primitive, Evidence::Name));
        Some((
            start,
            Extent {
                start,
                end,
                primitive,
            },
        ))
    });
    let extents = extents.chain(without_names(&view, &nameless));
    let unique: BTreeMap<u64, Extent> = extents.collect();
    Ok(unique.into_values().collect())
}

/// Functions that only the unwind table knows, by their code.
fn without_names(view: &ElfView, addresses: &[u64]) -> BTreeMap<u64, Extent> {
    let bounds = view.function_bounds(addresses).unwrap_or_else(|error| {
        tracing::debug!(
            error = one_line(&error),
            "an image has no bounds of functions"
        );
        Vec::new()
    });
    let mut bounds: Vec<(u64, u64)> = bounds.into_iter().flatten().collect();
    bounds.dedup();
    let extents = bounds.into_iter().filter_map(|(first, end)| {
        let start = view.file_offset(first)?;
        let size = usize::try_from(end - first).ok()?.min(MAX_FUNCTION);
        let code = view.code(first, size as u64).ok()?;
        let primitive = by_code(&code, first, |at, size| view.memory(at, size));
        let extent = Extent {
            start,
            end: start.saturating_add(end - first),
            primitive: primitive.map(|primitive| (primitive, Evidence::Instructions)),
        };
        Some((start, extent))
    });
    extents.collect()
}
