//! Looks symbols up by name, without holding a symbol table in memory.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CStr;

use foldhash::fast::RandomState;
use object::LittleEndian as LE;
use object::elf::{self as format, SectionHeader64, Sym64, VersymIndex};
use object::endian::U16;

use super::{CHUNK, ElfError, ElfView, check_table};

/// A string table may hold a name many times, as the tail of other names; more
/// than this many hits are an attack.
const MAX_HITS: usize = 4096;
/// Names are first compared by this many bytes at their end.
const TAIL: usize = 4;

/// A function in an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Virtual address as linked.
    pub address: u64,
    /// Size in bytes, 0 where it is unknown.
    pub size: u64,
}

/// How sure it is that a symbol is the one that a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Static, in `.symtab`.
    Local,
    /// Global or hidden, in `.symtab`.
    Global,
    /// Exported, under a version that new programs do not link to.
    OldVersion,
    /// Exported.
    Exported,
}

/// The functions found under the names that were asked for.
#[derive(Debug, Default)]
pub struct Symbols {
    /// None: several static functions have this name.
    defined: HashMap<String, (Rank, Option<Symbol>)>,
    /// Indices in the dynamic symbol table.
    imported: BTreeMap<String, u64>,
}

impl Symbols {
    /// The function that the image defines under `name`.
    pub fn get(&self, name: &str) -> Option<Symbol> {
        self.defined.get(name)?.1
    }

    /// Whether the image defines a function of this name.
    pub(crate) fn defines(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Whether the image takes a symbol of this name from another image.
    pub fn imports(&self, name: &str) -> bool {
        self.imported.contains_key(name)
    }

    /// Index of that symbol in the dynamic symbol table.
    pub(super) fn import(&self, name: &str) -> Option<u64> {
        self.imported.get(name).copied()
    }

    fn add(&mut self, name: &str, rank: Rank, symbol: Symbol) {
        let found = (rank, Some(symbol));
        let known = self.defined.entry(name.to_owned()).or_insert(found);
        if rank > known.0 {
            *known = found;
        } else if rank == Rank::Local && *known != found && known.0 == rank {
            known.1 = None;
        }
    }
}

impl ElfView {
    /// Looks up functions in the dynamic and the static symbol table. Names
    /// shorter than four bytes are never found.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn symbols(&self, names: &[&str]) -> Result<Symbols, ElfError> {
        let mut found = Symbols::default();
        for (kind, dynamic) in [(format::SHT_DYNSYM, true), (format::SHT_SYMTAB, false)] {
            let mut sections = self.sections.iter();
            if let Some(table) = sections.find(|section| section.sh_type.get(LE) == kind) {
                self.search(table, dynamic, names, &mut found)?;
            }
        }
        Ok(found)
    }

    fn search(
        &self,
        table: &SectionHeader64<LE>,
        dynamic: bool,
        names: &[&str],
        found: &mut Symbols,
    ) -> Result<(), ElfError> {
        let link = table.sh_link.get(LE) as usize;
        let strings = self.sections.get(link);
        let strings = strings.ok_or(ElfError::Malformed("link to a string table"))?;
        let hits = self.find_names(strings, names)?;
        if hits.is_empty() {
            return Ok(());
        }
        let mut index = 0;
        let (offset, size) = (table.sh_offset.get(LE), table.sh_size.get(LE));
        self.stream("a symbol table", offset, size, |symbols: &[Sym64<LE>]| {
            for symbol in symbols {
                if let Some(name) = hits.get(&symbol.st_name.get(LE)) {
                    self.take(symbol, index, dynamic, name, found)?;
                }
                index += 1;
            }
            Ok(())
        })
    }

    fn take(
        &self,
        symbol: &Sym64<LE>,
        index: u64,
        dynamic: bool,
        name: &str,
        found: &mut Symbols,
    ) -> Result<(), ElfError> {
        let address = symbol.st_value.get(LE);
        if symbol.st_shndx.get(LE) == format::SHN_UNDEF {
            if dynamic {
                found.imported.insert(name.to_owned(), index);
            }
            return Ok(());
        }
        if symbol.st_type() != format::STT_FUNC || !self.is_executable(address) {
            return Ok(());
        }
        let rank = match (dynamic, symbol.st_bind()) {
            (true, _) if self.is_old_version(index)? => Rank::OldVersion,
            (true, _) => Rank::Exported,
            (false, format::STB_LOCAL) => Rank::Local,
            (false, _) => Rank::Global,
        };
        let size = symbol.st_size.get(LE);
        found.add(name, rank, Symbol { address, size });
        Ok(())
    }

    /// Whether the dynamic symbol `index` has a version that is not the default.
    fn is_old_version(&self, index: u64) -> Result<bool, ElfError> {
        let mut sections = self.sections.iter();
        let versions = sections.find(|s| s.sh_type.get(LE) == format::SHT_GNU_VERSYM);
        let Some(versions) = versions else {
            return Ok(false);
        };
        let offset = versions.sh_offset.get(LE).saturating_add(index * 2);
        let version: U16<LE, VersymIndex> = self.record("a symbol version", offset)?;
        Ok(version.get(LE).is_hidden())
    }

    /// Offsets in a string table at which one of `names` begins. Linkers let a
    /// name be the tail of a longer one, so that every place where it ends with
    /// a NUL counts.
    pub(super) fn find_names<'n>(
        &self,
        strings: &SectionHeader64<LE>,
        names: &[&'n str],
    ) -> Result<HashMap<u32, &'n str>, ElfError> {
        let (start, size) = (strings.sh_offset.get(LE), strings.sh_size.get(LE));
        check_table("a string table", size)?;
        let by_tail = by_tail(names);
        let longest = names.iter().map(|name| name.len()).max().unwrap_or(0) as u64;
        let mut hits = HashMap::new();
        let mut done = 0;
        while done < size {
            let from = done.saturating_sub(longest);
            let chunk = (done - from + CHUNK).min(size - from);
            let bytes = self.bytes("a string table", start.saturating_add(from), chunk)?;
            collect_hits(&bytes, from, &by_tail, &mut hits);
            if hits.len() > MAX_HITS {
                return Err(ElfError::TooLarge {
                    what: "the list of equal names",
                    size: hits.len() as u64,
                    limit: MAX_HITS as u64,
                });
            }
            done = from + chunk;
        }
        Ok(hits)
    }
}

/// Names by their ends.
type ByTail<'n> = HashMap<[u8; TAIL], Vec<&'n str>, RandomState>;

fn by_tail<'n>(names: &[&'n str]) -> ByTail<'n> {
    let mut map = ByTail::default();
    for name in names {
        if let Some(tail) = name.as_bytes().last_chunk() {
            map.entry(*tail).or_default().push(name);
        }
    }
    map
}

/// Where strings end: the bytes that are 0. The standard library looks at many at once.
fn ends(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let string = CStr::from_bytes_until_nul(bytes.get(from..)?).ok()?;
        let end = from + string.count_bytes();
        from = end + 1;
        Some(end)
    })
}

/// Adds the offsets of all names that end in `bytes`, which begin at offset
/// `from` of the string table.
fn collect_hits<'n>(
    bytes: &[u8],
    from: u64,
    by_tail: &ByTail<'n>,
    hits: &mut HashMap<u32, &'n str>,
) {
    for end in ends(bytes) {
        let before = bytes.get(..end).unwrap_or_default();
        let tail = before.last_chunk().and_then(|tail| by_tail.get(tail));
        for name in tail.into_iter().flatten() {
            if before.ends_with(name.as_bytes()) {
                let offset = from + (end - name.len()) as u64;
                hits.extend(u32::try_from(offset).ok().map(|offset| (offset, *name)));
            }
        }
    }
}
