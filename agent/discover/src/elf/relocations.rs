//! Values that pointers in data will have, before any process loads the image.

use std::collections::{BTreeMap, BTreeSet};

use object::LittleEndian as LE;
use object::elf::{self as format, Dyn64, Rela64, RelocationType, Sym64};
use object::endian::U64;

use super::{Arch, ElfError, ElfView, MAX_SMALL_TABLE};

const WORD: u64 = 8;

/// A table that the dynamic section names: address and size in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Table {
    address: u64,
    size: u64,
}

#[derive(Debug, Default)]
pub(super) struct Dynamic {
    pub(super) rela: Table,
    /// Slots of the procedure linkage table.
    pub(super) jump_slots: Table,
    relr: Table,
    symbols: u64,
}

impl ElfView {
    /// The values of the pointer-sized words at the addresses `slots`, as
    /// addresses of the same image as linked. A word that is no pointer into
    /// the image is left out; in an image linked to a fixed address, where no
    /// relocation distinguishes pointers from numbers, every word is returned.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn pointers(&self, slots: &BTreeSet<u64>) -> Result<BTreeMap<u64, u64>, ElfError> {
        let mut values = BTreeMap::new();
        if self.fixed {
            for slot in slots {
                values.insert(*slot, self.word(*slot)?);
            }
        }
        let dynamic = self.read_dynamic()?;
        self.apply_rela(&dynamic, slots, &mut values)?;
        self.apply_relr(dynamic.relr, slots, &mut values)?;
        Ok(values)
    }

    fn word(&self, address: u64) -> Result<u64, ElfError> {
        let offset = self.mapped("a pointer", address)?;
        Ok(self.record::<U64<LE>>("a pointer", offset)?.get(LE))
    }

    pub(super) fn read_dynamic(&self) -> Result<Dynamic, ElfError> {
        let mut dynamic = Dynamic::default();
        let Some((offset, size)) = self.dynamic else {
            return Ok(dynamic);
        };
        let bytes = self.bytes("the dynamic section", offset, size.min(MAX_SMALL_TABLE))?;
        for entry in super::records::<Dyn64<LE>>(&bytes) {
            let value = entry.d_val.get(LE);
            match entry.d_tag.get(LE) {
                format::DT_NULL => break,
                format::DT_RELA => dynamic.rela.address = value,
                format::DT_RELASZ => dynamic.rela.size = value,
                format::DT_JMPREL => dynamic.jump_slots.address = value,
                format::DT_PLTRELSZ => dynamic.jump_slots.size = value,
                format::DT_RELR => dynamic.relr.address = value,
                format::DT_RELRSZ => dynamic.relr.size = value,
                format::DT_SYMTAB => dynamic.symbols = value,
                _ => {}
            }
        }
        Ok(dynamic)
    }

    fn apply_rela(
        &self,
        dynamic: &Dynamic,
        slots: &BTreeSet<u64>,
        values: &mut BTreeMap<u64, u64>,
    ) -> Result<(), ElfError> {
        self.each_rela(dynamic.rela, |entry| {
            let slot = entry.r_offset.get(LE);
            if slots.contains(&slot)
                && let Some(value) = self.resolve(entry, dynamic.symbols)?
            {
                values.insert(slot, value);
            }
            Ok(())
        })
    }

    pub(super) fn each_rela(
        &self,
        table: Table,
        mut visit: impl FnMut(&Rela64<LE>) -> Result<(), ElfError>,
    ) -> Result<(), ElfError> {
        let what = "the relocation table";
        if table.size == 0 {
            return Ok(());
        }
        let offset = self.mapped(what, table.address)?;
        self.stream(what, offset, table.size, |entries: &[Rela64<LE>]| {
            entries.iter().try_for_each(&mut visit)
        })
    }

    /// The value that a relocation gives, unless it depends on another image.
    fn resolve(&self, entry: &Rela64<LE>, symbols: u64) -> Result<Option<u64>, ElfError> {
        let addend = entry.r_addend.get(LE);
        let kind = entry.r_type(LE, false);
        let (relative, absolute) = match self.arch {
            Arch::X86_64 => (format::R_X86_64_RELATIVE, format::R_X86_64_64),
            Arch::Aarch64 => (format::R_AARCH64_RELATIVE, format::R_AARCH64_ABS64),
            Arch::Other(_) => (RelocationType(0), RelocationType(0)),
        };
        if kind == relative {
            return Ok(Some(addend.cast_unsigned()));
        }
        if kind != absolute {
            return Ok(None);
        }
        let index = u64::from(entry.r_sym(LE, false));
        let address = symbols.saturating_add(index * size_of::<Sym64<LE>>() as u64);
        let offset = self.mapped("a symbol", address)?;
        let symbol: Sym64<LE> = self.record("a symbol", offset)?;
        let defined = symbol.st_shndx.get(LE) != format::SHN_UNDEF;
        let value = symbol.st_value.get(LE).wrapping_add_signed(addend);
        Ok(defined.then_some(value))
    }

    /// Packed relative relocations (`DT_RELR`): an even word is an address, an
    /// odd one a bitmap of the 63 words that follow the last.
    fn apply_relr(
        &self,
        table: Table,
        slots: &BTreeSet<u64>,
        values: &mut BTreeMap<u64, u64>,
    ) -> Result<(), ElfError> {
        let what = "the packed relocation table";
        if table.size == 0 {
            return Ok(());
        }
        let offset = self.mapped(what, table.address)?;
        let mut base = 0_u64;
        self.stream(what, offset, table.size, |entries: &[U64<LE>]| {
            for entry in entries.iter().map(|entry| entry.get(LE)) {
                if entry & 1 == 0 {
                    if slots.contains(&entry) {
                        values.insert(entry, self.word(entry)?);
                    }
                    base = entry.saturating_add(WORD);
                    continue;
                }
                let end = base.saturating_add(63 * WORD);
                for slot in slots.range(base..end) {
                    let bit = (slot - base) / WORD + 1;
                    if (slot - base).is_multiple_of(WORD) && entry >> bit & 1 == 1 {
                        values.insert(*slot, self.word(*slot)?);
                    }
                }
                base = end;
            }
            Ok(())
        })
    }
}
