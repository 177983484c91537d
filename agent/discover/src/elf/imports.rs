//! Where an image calls a function of another image: its procedure linkage
//! table. A call goes to a stub, which jumps to the address that the dynamic
//! loader puts into a slot of its own.

use std::collections::BTreeSet;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction};
use object::LittleEndian as LE;
use object::elf::{self as format, SectionHeader64};

use super::{Arch, ElfError, ElfView, MAX_CODE, Symbol, Symbols};

/// Sections of stubs: `.plt.sec` in images for processors that check the targets
/// of indirect branches, else `.plt`.
const STUB_SECTIONS: [&[u8]; 2] = [b".plt\0", b".plt.sec\0"];
/// Bytes read of a section's name: the longer of these.
const SECTION_NAME: u64 = 9;
const WHAT: &str = "the procedure linkage table";

/// Why the jump to an imported function cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The image could not be read.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// The image does not import it.
    #[error("it is not imported")]
    NotImported,
    /// The image takes its address, so that it can be called without the stub.
    /// Code built with `-fno-plt` does so for every call.
    #[error("the image can call it without the procedure linkage table")]
    AddressTaken,
    /// Not one jump, as in images of unusual linkers.
    #[error("{0} jumps of the procedure linkage table lead to it, not one")]
    Jumps(usize),
    /// Only x86-64 code can be read so far.
    #[error("the procedure linkage table of this processor ({0:?}) is not supported")]
    Architecture(Arch),
}

impl ElfView {
    /// The jump instruction through which this image calls the function `name`
    /// of another image. All its calls pass it, and no other image's do.
    /// `symbols` must have been asked for `name`.
    ///
    /// # Errors
    /// See [`ImportError`].
    pub fn import_jump(&self, symbols: &Symbols, name: &str) -> Result<Symbol, ImportError> {
        if self.arch != Arch::X86_64 {
            return Err(ImportError::Architecture(self.arch));
        }
        let symbol = symbols.import(name).ok_or(ImportError::NotImported)?;
        let slot = self.jump_slot(symbol)?;
        let mut jumps = Vec::new();
        let mut budget = MAX_CODE;
        for section in &self.sections {
            if self.holds_stubs(section)? {
                let size = section.sh_size.get(LE).min(budget);
                budget -= size;
                jumps.extend(self.jumps_through(slot, section.sh_addr.get(LE), size)?);
            }
        }
        match *jumps.as_slice() {
            [jump] => Ok(jump),
            _ => Err(ImportError::Jumps(jumps.len())),
        }
    }

    /// The only place to which the dynamic loader writes the address of a
    /// symbol, if it is one for a stub.
    fn jump_slot(&self, symbol: u64) -> Result<u64, ImportError> {
        let dynamic = self.read_dynamic()?;
        let mut places = BTreeSet::new();
        // Some linkers count the jump slots as part of the first table too.
        for table in [dynamic.rela, dynamic.jump_slots] {
            self.each_rela(table, |entry| {
                // Two are as bad as a million.
                if u64::from(entry.r_sym(LE, false)) == symbol && places.len() < 2 {
                    let for_stub = entry.r_type(LE, false) == format::R_X86_64_JUMP_SLOT;
                    places.insert((entry.r_offset.get(LE), for_stub));
                }
                Ok(())
            })?;
        }
        match (places.first(), places.len()) {
            (Some((slot, true)), 1) => Ok(*slot),
            (None, _) => Err(ImportError::NotImported),
            _ => Err(ImportError::AddressTaken),
        }
    }

    fn holds_stubs(&self, section: &SectionHeader64<LE>) -> Result<bool, ElfError> {
        if section.sh_type.get(LE) != format::SHT_PROGBITS
            || section.sh_flags.get(LE).0 & format::SHF_EXECINSTR.0 == 0
        {
            return Ok(false);
        }
        let Some(names) = self.sections.get(self.section_names) else {
            return Ok(false);
        };
        let start = u64::from(section.sh_name.get(LE));
        let left = names.sh_size.get(LE).saturating_sub(start);
        let offset = names.sh_offset.get(LE).saturating_add(start);
        let name = self.bytes("a section name", offset, left.min(SECTION_NAME))?;
        Ok(STUB_SECTIONS.iter().any(|stubs| name.starts_with(stubs)))
    }

    /// Instructions `jmp *slot(%rip)` in a section of stubs. It is all of code,
    /// so that decoding from the first byte on stays in step.
    fn jumps_through(&self, slot: u64, address: u64, size: u64) -> Result<Vec<Symbol>, ElfError> {
        let code = self.code(address, size)?;
        let mut decoder = Decoder::with_ip(64, &code, address, DecoderOptions::NONE);
        let mut jumps = Vec::new();
        while decoder.can_decode() {
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                return Err(ElfError::Malformed(WHAT));
            }
            if jumped_through(&instruction) == Some(slot) {
                jumps.push(Symbol {
                    address: instruction.ip(),
                    size: instruction.len() as u64,
                });
            }
        }
        Ok(jumps)
    }
}

/// The slot of a stub's jump.
pub(super) fn jumped_through(instruction: &Instruction) -> Option<u64> {
    let is_jump = instruction.code() == Code::Jmp_rm64 && instruction.is_ip_rel_memory_operand();
    is_jump.then(|| instruction.ip_rel_memory_address())
}

#[cfg(test)]
pub(super) mod tests;
