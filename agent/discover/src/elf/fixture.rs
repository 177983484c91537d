//! Writes small ELF images for tests: one page each of code and of data, and
//! the tables that a linker would add.

#![allow(
    missing_docs,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "fixtures are small, and a mistake in them should end the test"
)]

use object::elf as format;

/// Virtual address of offset 0 of the file.
pub const BASE: u64 = 0x40_0000;
/// Offsets in the file.
pub const CODE: u64 = 0x1000;
pub const DATA: u64 = 0x2000;
const TABLES: u64 = 0x3000;
const PAGE: u64 = 0x1000;

/// `.plt` with 16 bytes a stub: `jmp *slot(%rip); push $0xc1; jmp start`. At the
/// offset 0x100 in the code of a fixture, it jumps through its first slot.
pub const LEGACY: [u8; 16] = [
    0xff, 0x25, 0xfa, 0x0e, 0x00, 0x00, 0x68, 0xc1, 0x00, 0x00, 0x00, 0xe9, 0xd0, 0xf3, 0xff, 0xff,
];

/// A symbol: name, virtual address (0: imported), size.
pub(crate) type Named = (&'static str, u64, u64);

/// What goes into an image.
#[derive(Default)]
pub struct Fixture {
    /// Linked to a fixed address, so that pointers need no relocation.
    pub fixed: bool,
    pub code: Vec<u8>,
    pub data: Vec<u8>,
    pub exported: Vec<Named>,
    /// Versions of the exported symbols, from the first on.
    pub versions: Vec<u16>,
    /// Of `.symtab`, with their binding.
    pub symbols: Vec<(Named, u8)>,
    /// The section of this name begins where the code does.
    pub code_section: &'static str,
    /// Number of the processor, 0 for x86-64.
    pub machine: u64,
    /// Slot, `r_info`, addend.
    pub rela: Vec<(u64, u64, u64)>,
    pub relr: Vec<u64>,
    /// Beginnings of functions in the unwind index, in order.
    pub functions: Vec<u64>,
}

/// `r_info` of R_X86_64_RELATIVE, and of R_X86_64_64 with a symbol's index.
pub const RELATIVE: u64 = 8;
pub const fn absolute(symbol: u64) -> u64 {
    symbol << 32 | 1
}
/// The same of R_X86_64_GLOB_DAT and R_X86_64_JUMP_SLOT.
pub const fn global_data(symbol: u64) -> u64 {
    symbol << 32 | 6
}
pub const fn jump_slot(symbol: u64) -> u64 {
    symbol << 32 | 7
}

impl Fixture {
    pub fn build(&self) -> Vec<u8> {
        let mut file = vec![0; TABLES as usize];
        file[CODE as usize..][..self.code.len()].copy_from_slice(&self.code);
        file[DATA as usize..][..self.data.len()].copy_from_slice(&self.data);
        let tables = self.append_tables(&mut file);
        let headers = append(&mut file, &self.section_headers(&tables));
        let programs = program_headers(&tables, headers.0);
        let kind = if self.fixed { 2 } else { 3 };
        let machine = if self.machine == 0 { 62 } else { self.machine };
        let header = [
            &b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"[..],
            &words([kind | machine << 16 | 1 << 32, BASE + CODE, 64, headers.0]),
            &words([64 << 32 | 56 << 48, 6 | 64 << 16 | 9 << 32 | 8 << 48]),
        ];
        file[..64].copy_from_slice(&header.concat());
        file[64..][..programs.len()].copy_from_slice(&programs);
        file
    }

    fn append_tables(&self, file: &mut Vec<u8>) -> Tables {
        let (dynsym, dynstr) = symbol_table(self.exported.iter().map(|named| (*named, 1)));
        let (symtab, strtab) = symbol_table(self.symbols.iter().copied());
        let versions = [0].iter().chain(&self.versions);
        let versions: Vec<u8> = versions
            .flat_map(|version: &u16| version.to_le_bytes())
            .collect();
        let rela = self.rela.iter();
        let rela = words(rela.flat_map(|(slot, info, addend)| [*slot, *info, *addend]));
        let note = [
            words([4 | 4 << 32]),
            vec![3, 0, 0, 0],
            b"GNU\0\xab\xcd\xef\x01".to_vec(),
        ];
        let dynsym = append(file, &dynsym);
        let dynstr = append(file, &dynstr);
        let versions = append(file, &versions);
        let rela = append(file, &rela);
        let relr = append(file, &words(self.relr.iter().copied()));
        let note = append(file, &note.concat());
        let symtab = append(file, &symtab);
        let strtab = append(file, &strtab);
        let start = file.len() as u64;
        let unwind = self.unwind_index(BASE + start.next_multiple_of(8));
        let unwind = append(file, &unwind);
        let text = b"\0enable OpenSSL 3.0 legacy\0OpenSSL 3.0.1 14 Dec 2021\0";
        let text = append(file, text);
        let pointers = [(7, rela.0), (36, relr.0), (6, dynsym.0)].map(|(tag, at)| (tag, BASE + at));
        let sizes = [(8, rela.1), (35, relr.1), (0, 0)];
        let dynamic = pointers.into_iter().chain(sizes);
        let dynamic = append(file, &words(dynamic.flat_map(|(tag, value)| [tag, value])));
        let names = [b"\0", self.code_section.as_bytes(), b"\0"].concat();
        let names = append(file, &names);
        Tables {
            dynsym,
            dynstr,
            versions,
            symtab,
            strtab,
            note,
            unwind,
            text,
            dynamic,
            names,
        }
    }

    fn section_headers(&self, tables: &Tables) -> Vec<u8> {
        let code = (CODE, self.code.len() as u64);
        let sections: [(u32, u64, Extent, u64); 9] = [
            (0, 0, (0, 0), 0),
            (format::SHT_DYNSYM.0, 2, tables.dynsym, 2),
            (format::SHT_STRTAB.0, 2, tables.dynstr, 0),
            (format::SHT_GNU_VERSYM.0, 2, tables.versions, 1),
            (format::SHT_SYMTAB.0, 0, tables.symtab, 5),
            (format::SHT_STRTAB.0, 0, tables.strtab, 0),
            (format::SHT_PROGBITS.0, 2, tables.text, 0),
            (format::SHT_PROGBITS.0, 6, code, 0),
            (format::SHT_STRTAB.0, 0, tables.names, 0),
        ];
        let headers = sections.iter();
        words(headers.flat_map(|(kind, flags, (offset, size), link)| {
            // Only the section of code has a name.
            let name_and_kind = u64::from(*kind) << 32 | u64::from(*flags == 6);
            let address = BASE + offset;
            [name_and_kind, *flags, address, *offset, *size, *link, 8, 0]
        }))
    }

    fn unwind_index(&self, base: u64) -> Vec<u8> {
        let count = self.functions.len() as u32;
        let mut index = vec![1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0];
        index.extend(count.to_le_bytes());
        for function in &self.functions {
            index.extend((function.wrapping_sub(base) as u32).to_le_bytes());
            index.extend([0; 4]);
        }
        index
    }
}

/// Offset and size in the file.
type Extent = (u64, u64);

/// Where the tables are.
struct Tables {
    dynsym: Extent,
    dynstr: Extent,
    versions: Extent,
    symtab: Extent,
    strtab: Extent,
    note: Extent,
    unwind: Extent,
    text: Extent,
    dynamic: Extent,
    names: Extent,
}

/// The tables end at `end`.
fn program_headers(tables: &Tables, end: u64) -> Vec<u8> {
    let programs: [(u64, u64, Extent); 6] = [
        (1, 5, (CODE, PAGE)),
        (1, 6, (DATA, PAGE)),
        (1, 4, (TABLES, end - TABLES)),
        (2, 6, tables.dynamic),
        (4, 4, tables.note),
        (0x6474_e550, 4, tables.unwind),
    ];
    let headers = programs.iter();
    words(headers.flat_map(|(kind, flags, (offset, size))| {
        let address = BASE + offset;
        let kind = kind | flags << 32;
        [kind, *offset, address, address, *size, *size, PAGE]
    }))
}

/// Appends at the next multiple of 8; returns where.
fn append(file: &mut Vec<u8>, bytes: &[u8]) -> Extent {
    file.resize(file.len().next_multiple_of(8), 0);
    let offset = file.len() as u64;
    file.extend(bytes);
    (offset, bytes.len() as u64)
}

fn words(words: impl IntoIterator<Item = u64>) -> Vec<u8> {
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

fn symbol_table(symbols: impl Iterator<Item = (Named, u8)>) -> (Vec<u8>, Vec<u8>) {
    let (mut table, mut strings) = (vec![0; 24], vec![0]);
    for ((name, address, size), binding) in symbols {
        let section = u64::from(address != 0);
        let info = u64::from(binding << 4 | 2);
        // Like linkers, let a name be the tail of one that is there already.
        let text = [name.as_bytes(), &[0]].concat();
        let known = strings.windows(text.len()).position(|tail| *tail == text);
        let start = known.unwrap_or(strings.len()) as u64;
        if known.is_none() {
            strings.extend(text);
        }
        table.extend(words([start | info << 32 | section << 48, address, size]));
    }
    (table, strings)
}
