//! Reads the headers of an image.

use object::LittleEndian as LE;
use object::elf::{self as format, FileHeader64, ProgramHeader64};
use object::pod::{self, Pod};

use super::{Arch, ElfError, ElfView, MAX_SMALL_TABLE, Segment, records};

/// Linkers write about a dozen program headers and some dozens of sections.
const MAX_HEADERS: u64 = 4096;
/// Longest build-id: twice a SHA-256.
const MAX_BUILD_ID: usize = 64;
/// Most segments that are looked up by address; linkers make a handful.
const MAX_SEGMENTS: usize = 64;

impl ElfView {
    pub(super) fn read_kind(&mut self, header: &FileHeader64<LE>) -> Result<(), ElfError> {
        let kind = header.e_type.get(LE);
        let supported = header.e_ident.class == format::ELFCLASS64
            && header.e_ident.data == format::ELFDATA2LSB
            && (kind == format::ET_EXEC || kind == format::ET_DYN);
        if !supported {
            return Err(ElfError::Unsupported);
        }
        self.fixed = kind == format::ET_EXEC;
        self.arch = match header.e_machine.get(LE) {
            format::EM_X86_64 => Arch::X86_64,
            format::EM_AARCH64 => Arch::Aarch64,
            other => Arch::Other(other.0),
        };
        Ok(())
    }

    pub(super) fn read_program_headers(
        &mut self,
        header: &FileHeader64<LE>,
    ) -> Result<(), ElfError> {
        let what = "the program header table";
        let count = u64::from(header.e_phnum.get(LE));
        let headers: Vec<ProgramHeader64<LE>> = self.headers(
            what,
            header.e_phoff.get(LE),
            count,
            header.e_phentsize.get(LE),
        )?;
        for header in &headers {
            let (offset, size) = (header.p_offset.get(LE), header.p_filesz.get(LE));
            let address = header.p_vaddr.get(LE);
            match header.p_type.get(LE) {
                format::PT_LOAD if self.segments.len() < MAX_SEGMENTS => {
                    self.segments.push(Segment {
                        offset,
                        address,
                        size,
                        executable: header.p_flags.get(LE).0 & format::PF_X.0 != 0,
                        writable: header.p_flags.get(LE).0 & format::PF_W.0 != 0,
                    });
                }
                format::PT_DYNAMIC => self.dynamic = Some((offset, size)),
                format::PT_GNU_EH_FRAME => self.unwind_index = Some(address),
                format::PT_NOTE if self.build_id.is_none() => {
                    let notes = self.bytes("a note", offset, size.min(MAX_SMALL_TABLE))?;
                    self.build_id = build_id(&notes);
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn read_section_headers(
        &mut self,
        header: &FileHeader64<LE>,
    ) -> Result<(), ElfError> {
        self.section_names = usize::from(header.e_shstrndx.get(LE).0);
        if header.e_shoff.get(LE) != 0 {
            let what = "the section header table";
            let count = u64::from(header.e_shnum.get(LE));
            self.sections = self.headers(
                what,
                header.e_shoff.get(LE),
                count,
                header.e_shentsize.get(LE),
            )?;
        }
        Ok(())
    }

    fn headers<T: Pod>(
        &self,
        what: &'static str,
        offset: u64,
        count: u64,
        entry_size: u16,
    ) -> Result<Vec<T>, ElfError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        if count > MAX_HEADERS {
            return Err(ElfError::TooLarge {
                what,
                size: count,
                limit: MAX_HEADERS,
            });
        }
        if usize::from(entry_size) != size_of::<T>() {
            return Err(ElfError::Malformed(what));
        }
        let bytes = self.bytes(what, offset, count * u64::from(entry_size))?;
        Ok(records(&bytes).to_vec())
    }
}

/// Finds the GNU build-id among the notes of one segment.
fn build_id(mut notes: &[u8]) -> Option<String> {
    while let Ok((header, rest)) = pod::from_bytes::<format::NoteHeader64<LE>>(notes) {
        let name_size = usize::try_from(header.n_namesz.get(LE)).ok()?;
        let size = usize::try_from(header.n_descsz.get(LE)).ok()?;
        let name = rest.get(..name_size)?;
        // The build-id is in a segment of 4-byte alignment; one with 8 holds
        // GNU properties, and its padding only makes this loop end early.
        let rest = rest.get(name_size.checked_next_multiple_of(4)?..)?;
        let description = rest.get(..size)?;
        if name == b"GNU\0" && header.n_type.get(LE) == format::NT_GNU_BUILD_ID {
            let id = description.get(..size.min(MAX_BUILD_ID))?;
            return Some(id.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        notes = rest.get(size.checked_next_multiple_of(4)?..)?;
    }
    None
}
