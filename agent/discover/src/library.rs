//! Says which TLS library an image is, or holds.

use tlsprof_common::Step;
use tlsprof_library::openssl::{self, ASYNC_JOBS};
use tlsprof_library::{Found, MAX_VERSION, Unsupported, marks, recognise};

use super::elf::{ElfError, ElfView, Symbols};

/// Read-only data searched for the version text. Node.js has 45 MiB of it.
const MAX_TEXT_SEARCH: u64 = 64 << 20;
/// An engine for OpenSSL calls it inside a job.
const ASYNC_PAUSE: &str = "ASYNC_pause_job";
/// makecontext(3): coroutines, which may switch stacks in the middle of any
/// call. libcrypto has them for asynchronous jobs, which `ASYNC_PAUSE` tells of.
const MAKE_CONTEXT: &str = "makecontext";

/// What was found in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// No TLS library that is known here.
    None,
    /// One that can be probed.
    Supported(Found),
    /// One that looks like it, and cannot.
    Unsupported(Unsupported),
}

/// What an image says about TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detection {
    /// The TLS library in it.
    pub tls: Tls,
    /// The image may switch stacks in the middle of a handshake: an engine that
    /// calls `ASYNC_pause_job`, or a program with coroutines (makecontext(3)). A
    /// process that maps it must have no uretprobes. Coroutines of another make
    /// are not seen.
    pub switches_stacks: bool,
}

/// Looks for a TLS library. Costs one pass over the symbol names of the image,
/// and more only where there is one.
///
/// # Errors
/// See [`ElfError`].
pub fn detect(image: &ElfView) -> Result<Detection, ElfError> {
    let names: Vec<&str> = marks().chain(stack_marks()).collect();
    let symbols = image.symbols(&names)?;
    let tls = match recognise(&|name| symbols.defines(name)) {
        None => Tls::None,
        Some(Err(unsupported)) => Tls::Unsupported(unsupported),
        Some(Ok(mut found)) => {
            found.version = version(image, found.library.version)?;
            Tls::Supported(found)
        }
    };
    Ok(Detection {
        tls,
        switches_stacks: switches_stacks(&symbols),
    })
}

/// Whether an image may switch stacks, as [`Detection::switches_stacks`] has it,
/// without looking for a TLS library.
///
/// # Errors
/// See [`ElfError`].
pub fn may_switch_stacks(image: &ElfView) -> Result<bool, ElfError> {
    let names: Vec<&str> = stack_marks().collect();
    Ok(switches_stacks(&image.symbols(&names)?))
}

/// The step that a function of the image is called for, by its name, with all that it calls itself.
pub fn step_of(image: &ElfView, name: &str) -> Option<Step> {
    openssl::step_of(name, &|name| {
        let symbols = image.symbols(&[name]);
        symbols.is_ok_and(|symbols| symbols.defines(name))
    })
}

fn stack_marks() -> impl Iterator<Item = &'static str> {
    [ASYNC_PAUSE, MAKE_CONTEXT].into_iter().chain(ASYNC_JOBS)
}

fn switches_stacks(symbols: &Symbols) -> bool {
    let has_async_jobs = ASYNC_JOBS.iter().any(|name| symbols.defines(name));
    let has_coroutines = symbols.imports(MAKE_CONTEXT) && !has_async_jobs;
    symbols.imports(ASYNC_PAUSE) || has_coroutines
}

/// The library's own version text, empty where the image does not hold it.
fn version(image: &ElfView, find: fn(&[u8]) -> Option<&str>) -> Result<String, ElfError> {
    let mut found = String::new();
    image.scan_read_only_data(MAX_TEXT_SEARCH, MAX_VERSION as u64, |bytes| {
        if let Some(text) = find(bytes) {
            text.clone_into(&mut found);
        }
        !found.is_empty()
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests;
