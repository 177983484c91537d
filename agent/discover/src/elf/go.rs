//! Functions of Go programs, from the table by which Go's runtime finds them itself: `strip` leaves it.
//!
//! Layout as in Go 1.18 to 1.26 (cmd/link/internal/ld/pcln.go, runtime/symtab.go).

use object::LittleEndian as LE;
use object::elf::SectionHeader64;
use object::endian::{U32, U64};

use super::functions::LONGEST_NAME;
use super::halving::first_from;
use super::{ElfError, ElfView, Function, MAX_TABLE};

const WHAT: &str = "Go's table of functions";
const SECTIONS: [&[u8]; 2] = [b".gopclntab", b".data.rel.ro.gopclntab"];
const TEXT: &[u8] = b".text";
/// Of Go 1.18 and 1.20; those of others are not read.
const MAGIC: [u32; 2] = [0xffff_fff0, 0xffff_fff1];
/// The linker may align the end of the code.
const PADDING: u64 = 64;

/// Functions by the beginning of their code, which is an offset in all of the code.
pub(super) struct GoFunctions<'a> {
    image: &'a ElfView,
    /// Address of the code.
    text: u64,
    /// Offsets in the file.
    functions: u64,
    names: u64,
    count: u64,
}

impl ElfView {
    /// None if this is not a Go program, or one whose code cannot be placed.
    pub(super) fn go_functions(&self) -> Result<Option<GoFunctions<'_>>, ElfError> {
        let Some(section) = self.section_named(&SECTIONS)? else {
            return Ok(None);
        };
        let (start, size) = (section.sh_offset.get(LE), section.sh_size.get(LE));
        let magic: [U32<LE>; 2] = self.record(WHAT, start)?;
        let header: [U64<LE>; 8] = self.record(WHAT, start.saturating_add(8))?;
        let [magic, _] = magic.map(|word| word.get(LE));
        let [count, _, text, names, .., functions] = header.map(|word| word.get(LE));
        if !MAGIC.contains(&magic) || size > MAX_TABLE || count > size / 8 {
            return Ok(None);
        }
        let table = GoFunctions {
            image: self,
            text,
            functions: start.saturating_add(functions),
            names: start.saturating_add(names),
            count,
        };
        if text != 0 {
            return Ok(self.is_executable(text).then_some(table));
        }
        // Go 1.26 no longer writes where the code is.
        let Some(code) = self.section_named(&[TEXT])? else {
            return Ok(None);
        };
        let fits = code.sh_size.get(LE).abs_diff(table.start(count)?) <= PADDING;
        let text = code.sh_addr.get(LE);
        Ok(fits.then_some(GoFunctions { text, ..table }))
    }

    pub(super) fn section_named(
        &self,
        wanted: &[&[u8]],
    ) -> Result<Option<&SectionHeader64<LE>>, ElfError> {
        let Some(names) = self.sections.get(self.section_names) else {
            return Ok(None);
        };
        let longest = wanted.iter().map(|name| name.len() as u64 + 1).max();
        for section in &self.sections {
            let at = u64::from(section.sh_name.get(LE));
            let left = names.sh_size.get(LE).saturating_sub(at);
            let offset = names.sh_offset.get(LE).saturating_add(at);
            let name = self.bytes("a section name", offset, left.min(longest.unwrap_or(0)))?;
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            if wanted.contains(&name) {
                return Ok(Some(section));
            }
        }
        Ok(None)
    }
}

impl GoFunctions<'_> {
    /// The function that an address is in.
    pub(super) fn at(&self, address: u64) -> Result<Option<Function>, ElfError> {
        let Some(offset) = address.checked_sub(self.text) else {
            return Ok(None);
        };
        let after = first_from(self.count + 1, |at| Ok(self.start(at)? > offset))?;
        let Some(at) = after.checked_sub(1).filter(|_| after <= self.count) else {
            return Ok(None);
        };
        let (start, end) = (self.start(at)?, self.start(after)?);
        let [_, about] = self.entry(at)?;
        let about: [U32<LE>; 2] = self
            .image
            .record(WHAT, self.functions.saturating_add(about))?;
        let [_, name] = about.map(|word| u64::from(word.get(LE)));
        let name = self.names.saturating_add(name);
        Ok(Some(Function {
            start: self.text.saturating_add(start),
            size: end.saturating_sub(start),
            name: self.image.text_at(name, LONGEST_NAME)?,
        }))
    }

    /// Where the code of a function begins; of the one after the last, where all code ends.
    fn start(&self, at: u64) -> Result<u64, ElfError> {
        let at = self.functions.saturating_add(at.saturating_mul(8));
        let [start]: [U32<LE>; 1] = self.image.record(WHAT, at)?;
        Ok(u64::from(start.get(LE)))
    }

    /// That, and where more is written about it.
    fn entry(&self, at: u64) -> Result<[u64; 2], ElfError> {
        let at = self.functions.saturating_add(at.saturating_mul(8));
        let entry: [U32<LE>; 2] = self.image.record(WHAT, at)?;
        Ok(entry.map(|word| u64::from(word.get(LE))))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::super::fixture::{BASE, CODE, Fixture};
    use super::*;
    use proptest::prelude::*;

    const TEXT: u64 = BASE + CODE;
    const SIZE: usize = 0x100;

    /// Two functions of 0x80 bytes, `a/b.c` and `d.e`, in a table at the beginning of the code. That
    /// begins at `text`, 0 where that is not written.
    fn table(text: u64) -> Vec<u8> {
        let mut table = 0xffff_fff1_u32.to_le_bytes().to_vec();
        table.extend([0, 0, 1, 8]);
        let (names, functions) = (72, 88);
        for word in [2, 0, text, names, 0, 0, 0, functions] {
            table.extend(u64::to_le_bytes(word));
        }
        table.extend(b"\0a/b.c\0d.e\0\0\0\0\0\0");
        let size = u32::try_from(SIZE).unwrap();
        let entries = [0, 20, size / 2, 28, size];
        // Where each begins, and its name.
        let about = [0, 1, size / 2, 7];
        for word in entries.into_iter().chain(about) {
            table.extend(u32::to_le_bytes(word));
        }
        table
    }

    fn image(table: &[u8], code_section: &'static str) -> ElfView {
        let mut code = table.to_vec();
        code.resize(SIZE, 0xcc);
        let fixture = Fixture {
            code,
            code_section,
            ..Fixture::default()
        };
        ElfView::new(Box::new(fixture.build())).unwrap()
    }

    fn names(image: &ElfView) -> Vec<Option<(u64, u64, String)>> {
        let functions = image.go_functions().unwrap();
        let at = |address| {
            let found = functions.as_ref()?.at(address).unwrap()?;
            Some((found.start, found.size, found.name))
        };
        let last = TEXT + SIZE as u64 - 1;
        [TEXT - 1, TEXT, TEXT + 0x80, last, last + 1]
            .map(at)
            .to_vec()
    }

    #[test]
    fn functions_have_their_names_and_bounds() {
        let first = Some((TEXT, 0x80, "a/b.c".to_owned()));
        let second = Some((TEXT + 0x80, 0x80, "d.e".to_owned()));
        let found = names(&image(&table(TEXT), ".gopclntab"));
        assert_eq!(found, [None, first, second.clone(), second, None]);
    }

    #[test]
    fn code_that_cannot_be_placed_has_no_names() {
        for image in [
            image(&table(0), ".gopclntab"),
            image(&table(1), ".gopclntab"),
            image(&table(TEXT), ".text"),
        ] {
            assert!(image.go_functions().unwrap().is_none());
        }
    }

    proptest! {
        #[test]
        fn no_table_makes_it_panic(
            bytes in proptest::collection::vec(any::<u8>(), SIZE),
            keep in 0..SIZE,
        ) {
            let mut table = table(TEXT);
            table.resize(SIZE, 0);
            table[keep..].copy_from_slice(&bytes[keep..]);
            let image = image(&table, ".gopclntab");
            if let Ok(Some(functions)) = image.go_functions() {
                for address in [TEXT, TEXT + 0x90, u64::MAX] {
                    let _ = functions.at(address);
                }
            }
        }
    }
}
