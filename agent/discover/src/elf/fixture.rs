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
pub type Named = (&'static str, u64, u64);

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

        let (dynsym, dynstr) = symbol_table(self.exported.iter().map(|named| (*named, 1)));
        let (symtab, strtab) = symbol_table(self.symbols.iter().copied());
        let versions: Vec<u8> = [0]
            .iter()
            .chain(&self.versions)
            .flat_map(|version: &u16| version.to_le_bytes())
            .collect();
        let rela = self
            .rela
            .iter()
            .flat_map(|(slot, info, addend)| [*slot, *info, *addend]);
        let rela = words(rela);
        let relr = words(self.relr.iter().copied());
        let note = [
            words([4 | 4 << 32]),
            vec![3, 0, 0, 0],
            b"GNU\0\xab\xcd\xef\x01".to_vec(),
        ];

        let at = |file: &mut Vec<u8>, bytes: &[u8]| append(file, bytes);
        let dynsym = at(&mut file, &dynsym);
        let dynstr = at(&mut file, &dynstr);
        let versions = at(&mut file, &versions);
        let rela = at(&mut file, &rela);
        let relr = at(&mut file, &relr);
        let note = at(&mut file, &note.concat());
        let symtab = at(&mut file, &symtab);
        let strtab = at(&mut file, &strtab);
        let start = file.len() as u64;
        let unwind = at(
            &mut file,
            &self.unwind_index(BASE + start.next_multiple_of(8)),
        );
        let text = at(
            &mut file,
            b"\0enable OpenSSL 3.0 legacy\0OpenSSL 3.0.1 14 Dec 2021\0",
        );
        let dynamic = words([
            7,
            BASE + rela.0,
            8,
            rela.1,
            36,
            BASE + relr.0,
            35,
            relr.1,
            6,
            BASE + dynsym.0,
            0,
            0,
        ]);
        let dynamic = at(&mut file, &dynamic);

        let names = [b"\0", self.code_section.as_bytes(), b"\0"].concat();
        let names = at(&mut file, &names);
        let code = (CODE, self.code.len() as u64);
        let sections: [(u32, u64, (u64, u64), u64); 9] = [
            (0, 0, (0, 0), 0),
            (format::SHT_DYNSYM.0, 2, dynsym, 2),
            (format::SHT_STRTAB.0, 2, dynstr, 0),
            (format::SHT_GNU_VERSYM.0, 2, versions, 1),
            (format::SHT_SYMTAB.0, 0, symtab, 5),
            (format::SHT_STRTAB.0, 0, strtab, 0),
            (format::SHT_PROGBITS.0, 2, text, 0),
            (format::SHT_PROGBITS.0, 6, code, 0),
            (format::SHT_STRTAB.0, 0, names, 0),
        ];
        let headers = sections
            .iter()
            .flat_map(|(kind, flags, (offset, size), link)| {
                [
                    // Only the section of code has a name.
                    u64::from(*kind) << 32 | u64::from(*flags == 6),
                    *flags,
                    BASE + offset,
                    *offset,
                    *size,
                    *link,
                    8,
                    0,
                ]
            });
        let headers = at(&mut file, &words(headers));

        let tables = (TABLES, headers.0 - TABLES);
        let programs: [(u64, u64, (u64, u64)); 6] = [
            (1, 5, (CODE, PAGE)),
            (1, 6, (DATA, PAGE)),
            (1, 4, tables),
            (2, 6, dynamic),
            (4, 4, note),
            (0x6474_e550, 4, unwind),
        ];
        let programs = programs.iter().flat_map(|(kind, flags, (offset, size))| {
            let address = BASE + offset;
            [
                kind | flags << 32,
                *offset,
                address,
                address,
                *size,
                *size,
                PAGE,
            ]
        });
        let programs = words(programs);
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

/// Appends at the next multiple of 8; returns offset and size.
fn append(file: &mut Vec<u8>, bytes: &[u8]) -> (u64, u64) {
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
