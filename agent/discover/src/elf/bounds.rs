//! Where functions begin and end, from the unwind tables: the only thing that a stripped image still
//! says about functions that it does not export.

use object::LittleEndian as LE;
use object::elf::{self as format, Sym64};
use object::endian::U32;

use super::{ElfError, ElfView};

const WHAT: &str = "the unwind table";
/// Most of an unwind table that is read; of the largest programs some 20 MB.
const MAX_TABLE: u64 = 64 << 20;
/// The least length of a record: reference to its head, beginning and size, of 32 bits each.
const LEAST: u32 = 12;
/// Most functions of an image: more than the largest browsers have.
const MAX_FUNCTIONS: usize = 1 << 20;
/// Size of a record's length and of the reference to its head.
const HEAD: usize = 8;

/// A part of the image's code that is one function: first address, and that after the last.
pub type Bounds = (u64, u64);

/// What surrounds an address in an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Around {
    /// A function.
    Function(Bounds),
    /// Code that is in no function, as far as that is known: the address alone at least.
    Gap(Bounds),
}

impl ElfView {
    /// The functions that these addresses are in, in the order of the addresses.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn functions_around(&self, addresses: &[u64]) -> Result<Vec<Around>, ElfError> {
        let indexed = self.unwind_index()?.is_some();
        if !indexed && !addresses.is_empty() {
            let all = self.all_function_bounds()?;
            let named = self.has_names()?;
            let around = addresses.iter().map(|&at| match around(&all, at) {
                // Functions with names may lie there.
                Around::Gap(_) if named => alone(at),
                Around::Gap(gap) => Around::Gap(self.within_segment(at, gap)),
                found @ Around::Function(_) => found,
            });
            return Ok(around.collect());
        }
        let indexed = addresses.iter().map(|&at| {
            let found = self.indexed_function(at)?;
            Ok(found.map_or_else(|| alone(at), Around::Function))
        });
        indexed.collect()
    }

    fn indexed_function(&self, at: u64) -> Result<Option<Bounds>, ElfError> {
        let Some((start, record)) = self.function_record(at)? else {
            return Ok(None);
        };
        // One bad record says nothing of the others.
        let read = |offset| self.record::<[U32<LE>; 4]>(WHAT, offset);
        let Ok([_, _, begins, size]) = self.mapped(WHAT, record).and_then(read) else {
            return Ok(None);
        };
        let bounds = bounds(record.wrapping_add(HEAD as u64), begins, size);
        Ok(bounds.filter(|(first, end)| *first == start && at < *end))
    }

    /// Whether it may have names of functions: any symbol, or the table of Go's runtime.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn has_names(&self) -> Result<bool, ElfError> {
        let mut tables = self.sections.iter().filter(|section| {
            let kind = section.sh_type.get(LE);
            kind == format::SHT_SYMTAB || kind == format::SHT_DYNSYM
        });
        // The first symbol is none.
        let first = size_of::<Sym64<LE>>() as u64;
        let has_symbols = tables.any(|table| table.sh_size.get(LE) > first);
        Ok(has_symbols || self.go_functions()?.is_some())
    }

    /// Of these bounds, what lies in the segment of an address within them.
    fn within_segment(&self, at: u64, (first, end): Bounds) -> Bounds {
        self.segment(at)
            .map_or((at, at.saturating_add(1)), |(segment, left)| {
                (first.max(segment.address), end.min(at.saturating_add(left)))
            })
    }

    /// What the image has at an address in memory that its code cannot change: so many bytes, or fewer at the end
    /// of what is loaded from the file; at most 1 MiB.
    pub fn constants(&self, address: u64, size: usize) -> Vec<u8> {
        let found = self.segment(address);
        let Some((segment, left)) = found.filter(|(segment, _)| !segment.writable) else {
            return Vec::new();
        };
        let offset = segment.offset.checked_add(address - segment.address);
        let size = (size as u64).min(left).min(super::MAX_CODE);
        let bytes = offset.and_then(|offset| self.bytes("memory", offset, size).ok());
        bytes.unwrap_or_default()
    }

    /// Of all functions in the table, sorted: a program that is linked statically has no index of it.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn all_function_bounds(&self) -> Result<Vec<Bounds>, ElfError> {
        let Some(table) = self.unwind_table()? else {
            return Ok(Vec::new());
        };
        let records = table.records(|address| self.is_executable(address));
        Ok(records.into_iter().map(|(bounds, _)| bounds).collect())
    }

    pub(super) fn unwind_table(&self) -> Result<Option<UnwindTable>, ElfError> {
        let Some(section) = self.section_named(&[b".eh_frame"])? else {
            return Ok(None);
        };
        let size = section.sh_size.get(LE).min(MAX_TABLE);
        Ok(Some(UnwindTable {
            address: section.sh_addr.get(LE),
            bytes: self.bytes(WHAT, section.sh_offset.get(LE), size)?,
        }))
    }
}

/// The table of all functions.
pub(super) struct UnwindTable {
    pub(super) address: u64,
    pub(super) bytes: Vec<u8>,
}

impl UnwindTable {
    /// The functions that begin in code, sorted, and where their records are among the bytes.
    pub(super) fn records(&self, is_code: impl Fn(u64) -> bool) -> Vec<(Bounds, usize)> {
        let mut all = Vec::new();
        let mut at = 0;
        while let Some(head) = self
            .bytes
            .get(at..)
            .and_then(|rest| rest.first_chunk::<16>())
        {
            let [length, parent, begins, size] = words(head);
            // An end, or a record of 64 bits, which no linker writes, or none at all.
            let is_record = length.get(LE) >= LEAST && length.get(LE) != u32::MAX;
            if !is_record || all.len() >= MAX_FUNCTIONS {
                break;
            }
            if parent.get(LE) != 0 {
                let field = self.address.wrapping_add((at + HEAD) as u64);
                let found = bounds(field, begins, size);
                let found = found.filter(|(first, _)| is_code(*first));
                all.extend(found.map(|bounds| (bounds, at)));
            }
            let next = usize::try_from(length.get(LE)).unwrap_or(usize::MAX);
            at = at.saturating_add(next).saturating_add(4);
        }
        all.sort_unstable();
        all
    }
}

/// Of a record of the only encoding that compilers write for code below 2 GB: the beginning relative
/// to its own place, `field`, and the size, of 32 bits each.
fn bounds(field: u64, begins: U32<LE>, size: U32<LE>) -> Option<Bounds> {
    let begins = begins.get(LE).cast_signed();
    let first = field.wrapping_add_signed(i64::from(begins));
    let end = first.checked_add(u64::from(size.get(LE)))?;
    (first < end).then_some((first, end))
}

fn words(bytes: &[u8; 16]) -> [U32<LE>; 4] {
    let (words, _) = bytes.as_chunks::<4>();
    let word = |at: usize| {
        let bytes = words.get(at).copied().unwrap_or_default();
        U32::new(LE, u32::from_le_bytes(bytes))
    };
    [word(0), word(1), word(2), word(3)]
}

/// What surrounds an address, by all functions in their order.
fn around(all: &[Bounds], address: u64) -> Around {
    let after = all.partition_point(|(first, _)| *first <= address);
    let before = after.checked_sub(1).and_then(|at| all.get(at)).copied();
    match before {
        Some(bounds) if address < bounds.1 => Around::Function(bounds),
        _ => {
            let first = before.map_or(0, |(_, end)| end);
            let end = all.get(after).map_or(u64::MAX, |(first, _)| *first);
            Around::Gap((first, end))
        }
    }
}

fn alone(address: u64) -> Around {
    Around::Gap((address, address.saturating_add(1)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::fs::File;

    use super::super::fixture::{BASE, CODE, Fixture};
    use super::*;
    use crate::sample::installed;

    /// Both ways to the same answer, and what the symbols say.
    #[test]
    fn functions_of_the_installed_libssl_have_their_bounds() {
        let image = ElfView::open(File::open(installed("libssl.so.3")).unwrap()).unwrap();
        let names = ["SSL_read", "SSL_do_handshake", "SSL_CTX_new"];
        let symbols = image.symbols(&names).unwrap();
        let all = image.all_function_bounds().unwrap();
        for name in names {
            let symbol = symbols.get(name).unwrap();
            let expected = (symbol.address, symbol.address + symbol.size);
            let inside = [symbol.address, symbol.address + symbol.size - 1];
            let expected = [Around::Function(expected); 2];
            assert_eq!(image.functions_around(&inside).unwrap(), expected, "{name}");
            assert_eq!(inside.map(|at| around(&all, at)), expected, "{name}");
        }
    }

    #[test]
    fn between_functions_there_is_a_gap() {
        let all = [(10, 20), (30, 40)];
        assert_eq!(around(&all, 9), Around::Gap((0, 10)));
        assert_eq!(around(&all, 19), Around::Function((10, 20)));
        assert_eq!(around(&all, 20), Around::Gap((20, 30)));
        assert_eq!(around(&all, 40), Around::Gap((40, u64::MAX)));
        assert_eq!(around(&[], 40), Around::Gap((0, u64::MAX)));
    }

    /// Without a table, all code of a stripped program is one gap; with names, functions may be in it.
    #[test]
    fn a_gap_is_all_of_the_code_unless_that_has_names() {
        let at = BASE + CODE + 0x10;
        let gap = |fixture: &Fixture| {
            let mut image = ElfView::new(Box::new(fixture.build())).unwrap();
            image.unwind_index = None;
            image.functions_around(&[at]).unwrap()
        };
        let whole = (BASE + CODE, BASE + CODE + 0x1000);
        assert_eq!(gap(&Fixture::default()), [Around::Gap(whole)]);
        let named = Fixture {
            symbols: vec![(("one", at, 8), 0)],
            ..Fixture::default()
        };
        assert_eq!(gap(&named), [alone(at)]);
    }
}
