//! Looks functions up by the addresses of their code, without holding a symbol table in
//! memory.

use std::collections::BTreeMap;

use object::LittleEndian as LE;
use object::elf::{self as format, SectionHeader64, Sym64};

use super::{ElfError, ElfView};

/// Longer names are cut: those of C++ templates have no end.
pub(super) const LONGEST_NAME: u64 = 512;
/// Symbols may overlap, but not so much that this many times one covers an address.
const MOST_COVERS: u64 = 10_000_000;

/// A function in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Virtual address as linked.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// Name as linked, at most 512 bytes.
    pub name: String,
}

/// The symbol that covers an address most closely, so far.
#[derive(Clone, Copy, Debug)]
struct Cover {
    start: u64,
    size: u64,
    /// Index of the string table's section, and the name's offset in it.
    name: (usize, u32),
}

impl ElfView {
    /// The names of the functions that these addresses are in: see [`functions_at`](Self::functions_at).
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn names_at(&self, addresses: &[u64]) -> Result<BTreeMap<u64, String>, ElfError> {
        let functions = self.functions_at(addresses)?.into_iter();
        Ok(functions
            .map(|(address, function)| (address, function.name))
            .collect())
    }

    /// The functions that these addresses are in, as far as the static and dynamic symbol tables
    /// name them: the smallest symbol with a size that covers one; else the table of Go's runtime.
    /// Where names cannot be read as text, they are read as well as possible.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn functions_at(&self, addresses: &[u64]) -> Result<BTreeMap<u64, Function>, ElfError> {
        let mut wanted: BTreeMap<u64, Option<Cover>> =
            addresses.iter().map(|address| (*address, None)).collect();
        for kind in [format::SHT_SYMTAB, format::SHT_DYNSYM] {
            let mut sections = self.sections.iter();
            if let Some(table) = sections.find(|section| section.sh_type.get(LE) == kind) {
                self.cover(table, &mut wanted)?;
            }
        }
        let of_go = self.go_functions()?;
        let mut functions = BTreeMap::new();
        for (address, cover) in wanted {
            let function = match (cover, &of_go) {
                (Some(cover), _) => Some(Function {
                    start: cover.start,
                    size: cover.size,
                    name: self.symbol_name(cover.name)?,
                }),
                (None, Some(of_go)) => of_go.at(address)?,
                (None, None) => None,
            };
            let function = function.filter(|function| !function.name.is_empty());
            functions.extend(function.map(|function| (address, function)));
        }
        Ok(functions)
    }

    fn cover(
        &self,
        table: &SectionHeader64<LE>,
        wanted: &mut BTreeMap<u64, Option<Cover>>,
    ) -> Result<(), ElfError> {
        let strings = table.sh_link.get(LE) as usize;
        let (offset, size) = (table.sh_offset.get(LE), table.sh_size.get(LE));
        let mut covers = 0;
        self.stream("a symbol table", offset, size, |symbols: &[Sym64<LE>]| {
            for symbol in symbols.iter().filter(|symbol| is_function(symbol)) {
                let (start, size) = (symbol.st_value.get(LE), symbol.st_size.get(LE));
                let inside = start..start.saturating_add(size);
                for (_, cover) in wanted.range_mut(inside) {
                    covers += 1;
                    if cover.is_none_or(|known| size < known.size) {
                        let name = (strings, symbol.st_name.get(LE));
                        *cover = Some(Cover { start, size, name });
                    }
                }
                if covers > MOST_COVERS {
                    return Err(ElfError::TooLarge {
                        what: "the overlap of symbols",
                        size: covers,
                        limit: MOST_COVERS,
                    });
                }
            }
            Ok(())
        })
    }

    pub(super) fn symbol_name(&self, (strings, at): (usize, u32)) -> Result<String, ElfError> {
        let strings = self.sections.get(strings);
        let strings = strings.ok_or(ElfError::Malformed("link to a string table"))?;
        let left = strings.sh_size.get(LE).saturating_sub(u64::from(at));
        let start = strings.sh_offset.get(LE).saturating_add(u64::from(at));
        self.text_at(start, left.min(LONGEST_NAME))
    }

    /// Text at an offset in the file, up to a NUL, and not longer than `most` bytes.
    pub(super) fn text_at(&self, offset: u64, most: u64) -> Result<String, ElfError> {
        let left = self.length.saturating_sub(offset);
        let bytes = self.bytes("the name of a symbol", offset, left.min(most))?;
        let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    /// Virtual address of the byte at `offset` in the file, where that is loaded as code.
    pub fn code_address(&self, offset: u64) -> Option<u64> {
        let code = self.segments.iter().filter(|segment| segment.executable);
        code.filter_map(|segment| {
            let within = offset.checked_sub(segment.offset)?;
            (within < segment.size).then(|| segment.address.checked_add(within))?
        })
        .next()
    }
}

fn is_function(symbol: &Sym64<LE>) -> bool {
    symbol.st_shndx.get(LE) != format::SHN_UNDEF
        && matches!(symbol.st_type(), format::STT_FUNC | format::STT_GNU_IFUNC)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::super::fixture::{BASE, CODE, Fixture};
    use super::*;

    const START: u64 = BASE + CODE;

    fn image(fixture: &Fixture) -> ElfView {
        ElfView::new(Box::new(fixture.build())).unwrap()
    }

    fn named(exported: Vec<(&'static str, u64, u64)>) -> ElfView {
        image(&Fixture {
            exported,
            symbols: vec![
                (("whole", START, 0x100), 0),
                (("inner", START + 0x20, 0x10), 0),
            ],
            ..Fixture::default()
        })
    }

    #[test]
    fn the_smallest_function_around_an_address_names_it() {
        let image = named(vec![("exported", START + 0x200, 0x40)]);
        let at = [
            START,
            START + 0x2f,
            START + 0x30,
            START + 0x210,
            START + 0x240,
        ];
        let names = image.names_at(&at).unwrap();
        let expected = [
            (START, "whole"),
            (START + 0x2f, "inner"),
            (START + 0x30, "whole"),
            (START + 0x210, "exported"),
        ];
        let expected = expected.map(|(address, name)| (address, name.to_owned()));
        assert_eq!(names, BTreeMap::from(expected));
    }

    #[test]
    fn imported_and_empty_symbols_name_nothing() {
        let image = named(vec![("imported", 0, 8), ("empty", START + 0x300, 0)]);
        let names = image.names_at(&[0, 4, START + 0x300]).unwrap();
        assert_eq!(names, BTreeMap::new());
    }

    #[test]
    fn offsets_in_code_have_addresses() {
        let image = image(&Fixture::default());
        assert_eq!(image.code_address(CODE + 0x42), Some(START + 0x42));
        assert_eq!(image.code_address(u64::MAX), None);
    }

    #[test]
    fn functions_of_the_installed_libssl_have_their_names() {
        let path = crate::sample::installed("libssl.so.3");
        let image = ElfView::open(std::fs::File::open(path).unwrap()).unwrap();
        let symbol = image
            .symbols(&["SSL_read"])
            .unwrap()
            .get("SSL_read")
            .unwrap();
        let last = symbol.address + symbol.size - 1;
        let names = image.names_at(&[symbol.address, last]).unwrap();
        assert_eq!(names.values().collect::<Vec<_>>(), ["SSL_read", "SSL_read"]);
    }
}
