//! Where the kernel's functions are, from /proc/kallsyms.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};

use foldhash::fast::RandomState;

use super::kernel_functions::{ESSENTIAL, Lookup, Meaning, base_name};
use super::rules::KernelWork;

const KALLSYMS: &str = "/proc/kallsyms";
const MODULES: &str = "/proc/modules";

/// Ten times what a large distribution kernel with its modules has.
const LONGEST: u64 = 128 << 20;

/// Why the kernel's functions cannot be identified.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read {KALLSYMS}: is this kernel built without CONFIG_KALLSYMS?")]
    Read(#[source] io::Error),
    /// All addresses are zero.
    #[error(
        "the kernel hides the addresses of its functions from this process: give it \
         CAP_SYSLOG (or run it as root) and set the sysctl kernel.kptr_restrict to 0 or 1"
    )]
    Hidden,
    /// It lists no function.
    #[error("{KALLSYMS} lists no function")]
    Empty,
    /// It is longer than that of any kernel.
    #[error("{KALLSYMS} is longer than {LONGEST} bytes")]
    TooLong,
    /// A line is not one of kallsyms.
    #[error("line {0} of {KALLSYMS} is not of the form: address, type, name")]
    Malformed(usize),
}

/// What the functions of the running kernel mean, by address: ranges of functions
/// that mean the same. Their names are not kept, so that it takes 60 KB where they
/// would take 5 MB; [`names`] finds them again.
///
/// As of the time when it was read: it holds as long as [`Modules`] are the same. BPF
/// programs come and go, but only functions of the list matter.
#[derive(Clone, Debug)]
pub struct KernelFunctions {
    /// Where each range begins, ascending; it ends where the next one begins.
    ranges: Vec<(u64, Option<Meaning>)>,
    missing: Vec<&'static str>,
}

/// The kernel's modules and where each is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modules(Vec<String>);

impl Modules {
    /// Those of the running kernel; None if it does not list them.
    pub fn read() -> Option<Self> {
        fs::read_to_string(MODULES)
            .ok()
            .map(|text| Self::parse(&text))
    }

    /// From the text of /proc/modules: `tls 151552 3 - Live 0xffffffffc0400000`. How often a module is in use
    /// is left out: each connection with kernel TLS changes it.
    pub fn parse(modules: &str) -> Self {
        let place = |line: &str| {
            let mut words = line.split(' ');
            Some(format!("{} {}", words.next()?, words.nth(4)?))
        };
        Self(modules.lines().filter_map(place).collect())
    }
}

/// A function of the kernel, of a module or of a BPF program.
#[derive(Clone, Copy)]
struct Symbol<'a> {
    address: u64,
    name: &'a [u8],
}

impl KernelFunctions {
    /// Reads the running kernel's table: some 10 MB of text, for a moment.
    ///
    /// # Errors
    /// [`Error`] if it cannot be read, or the kernel hides it.
    pub fn read() -> Result<Self, Error> {
        Self::parse(&read_text()?)
    }

    /// From the text of /proc/kallsyms.
    ///
    /// # Errors
    /// [`Error`] if it is no such text, or all addresses in it are zero.
    pub fn parse(kallsyms: &[u8]) -> Result<Self, Error> {
        let lookup = Lookup::new();
        let mut found = Vec::new();
        let mut names = HashSet::new();
        let wanted: HashSet<&str, RandomState> = ESSENTIAL.concat().into_iter().collect();
        for symbol in functions(kallsyms) {
            let symbol = symbol?;
            found.push((symbol.address, lookup.meaning(symbol.name)));
            let name = std::str::from_utf8(base_name(symbol.name)).unwrap_or_default();
            if let Some(name) = wanted.get(name) {
                names.insert(*name);
            }
        }
        check(found.iter().map(|(address, _)| *address))?;
        Ok(Self {
            ranges: ranges(found),
            missing: missing(&names),
        })
    }

    /// What a kernel stack is at work on: addresses, innermost first.
    pub fn work(&self, stack: &[u64]) -> KernelWork {
        KernelWork::of(calls(stack).map(|address| self.meaning(address)))
    }

    /// Functions without which the rules are blind to an activity, and which this
    /// kernel has under none of the names that are known: the first of these names.
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    fn meaning(&self, address: u64) -> Option<Meaning> {
        let next = self.ranges.partition_point(|(begin, _)| *begin <= address);
        self.ranges.get(next.checked_sub(1)?)?.1
    }
}

/// Names of the functions at these addresses of kernel stacks, for those that are
/// found. Reads /proc/kallsyms again.
///
/// # Errors
/// As [`KernelFunctions::read`].
pub fn names(addresses: &[u64]) -> Result<HashMap<u64, String>, Error> {
    names_in(&read_text()?, addresses)
}

/// As [`names`], from the text of /proc/kallsyms.
///
/// # Errors
/// As [`KernelFunctions::parse`].
pub(crate) fn names_in(kallsyms: &[u8], addresses: &[u64]) -> Result<HashMap<u64, String>, Error> {
    let mut symbols = functions(kallsyms).collect::<Result<Vec<_>, _>>()?;
    check(symbols.iter().map(|symbol| symbol.address))?;
    symbols.sort_by_key(|symbol| symbol.address);
    Ok(addresses
        .iter()
        .filter_map(|address| {
            let next = symbols.partition_point(|symbol| symbol.address <= *address);
            let symbol = symbols.get(next.checked_sub(1)?)?;
            let name = String::from_utf8_lossy(symbol.name).into_owned();
            Some((*address, name))
        })
        .collect())
}

/// The addresses of a stack as places inside the calling functions. All but the
/// innermost are return addresses, and a call that never returns may be a function's
/// last instruction.
pub fn calls(stack: &[u64]) -> impl Iterator<Item = u64> + '_ {
    stack
        .iter()
        .enumerate()
        .map(|(depth, address)| address.saturating_sub(u64::from(depth > 0)))
}

fn read_text() -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    File::open(KALLSYMS)
        .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut text))
        .map_err(Error::Read)?;
    if text.len() as u64 > LONGEST {
        return Err(Error::TooLong);
    }
    Ok(text)
}

/// The functions (types t and T, weak ones w and W) among the symbols.
fn functions(kallsyms: &[u8]) -> impl Iterator<Item = Result<Symbol<'_>, Error>> {
    kallsyms
        .split(|byte| *byte == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
        .filter_map(|(index, line)| match parse_line(line) {
            Some((symbol, b't' | b'T' | b'w' | b'W')) => Some(Ok(symbol)),
            Some(_) => None,
            None => Some(Err(Error::Malformed(index + 1))),
        })
}

/// `ffffffff81000000 T _text`, and for modules and BPF `\t[name]` after that.
fn parse_line(line: &[u8]) -> Option<(Symbol<'_>, u8)> {
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t'));
    let address = std::str::from_utf8(words.next()?).ok()?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let [kind] = words.next()? else { return None };
    let name = words.next().filter(|name| !name.is_empty())?;
    Some((Symbol { address, name }, *kind))
}

fn check(mut addresses: impl Iterator<Item = u64>) -> Result<(), Error> {
    match addresses.next() {
        None => Err(Error::Empty),
        Some(0) if addresses.all(|address| address == 0) => Err(Error::Hidden),
        Some(_) => Ok(()),
    }
}

fn ranges(mut functions: Vec<(u64, Option<Meaning>)>) -> Vec<(u64, Option<Meaning>)> {
    // Of names for one address, one that is in the list comes first, and stays.
    functions.sort_by_key(|(address, meaning)| (*address, meaning.is_none()));
    functions.dedup_by_key(|(address, _)| *address);
    functions.dedup_by_key(|(_, meaning)| *meaning);
    functions.shrink_to_fit();
    functions
}

fn missing(found: &HashSet<&str>) -> Vec<&'static str> {
    ESSENTIAL
        .iter()
        .filter(|names| !names.iter().any(|name| found.contains(name)))
        .filter_map(|names| names.first().copied())
        .collect()
}
