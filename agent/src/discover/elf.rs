//! A bounded view of an ELF image, good enough to find functions and to place
//! probes, and safe on hostile input.
//!
//! The file is never mapped: another process may truncate it, and touching a
//! mapped page beyond the new end raises SIGBUS. Everything is read in ranges
//! of bounded size, and tables are streamed in chunks.

mod relocations;
mod symbols;
mod unwind;

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use object::LittleEndian as LE;
use object::elf::{self as format, FileHeader64, ProgramHeader64, SectionHeader64};
use object::pod::{self, Pod};

pub use symbols::{Symbol, Symbols};

/// Bytes read at once while a table is streamed; a multiple of the size of
/// every table entry (2, 8, 16, 24).
const CHUNK: u64 = 3 << 18;
/// Largest table that is streamed: bounds the time spent on one image.
const MAX_TABLE: u64 = 512 << 20;
/// Linkers write about a dozen program headers and some dozens of sections.
const MAX_HEADERS: u64 = 4096;
/// Largest note segment and dynamic section that is read.
const MAX_SMALL_TABLE: u64 = 64 << 10;
/// Longest build-id: twice a SHA-256.
const MAX_BUILD_ID: usize = 64;
/// Most code that is read of one function.
const MAX_CODE: u64 = 1 << 20;

/// Why an ELF image could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ElfError {
    /// The file could not be read.
    #[error("cannot read {what} at offset {offset:#x}")]
    Read {
        /// What was being read.
        what: &'static str,
        /// Where it is in the file.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The magic number is missing.
    #[error("not an ELF file")]
    NotElf,
    /// An ELF file, but not a 64-bit little-endian executable or library.
    #[error("not a 64-bit little-endian ELF executable or library")]
    Unsupported,
    /// A table lies beyond the end of the file.
    #[error("{what} (offset {offset:#x}, {size} bytes) lies beyond the end of the file")]
    Truncated {
        /// The table.
        what: &'static str,
        /// Where it should be in the file.
        offset: u64,
        /// Its size in bytes.
        size: u64,
    },
    /// A table is larger than any real one.
    #[error("{what} has {size} bytes or entries, the limit is {limit}")]
    TooLarge {
        /// The table.
        what: &'static str,
        /// Its size.
        size: u64,
        /// The largest accepted.
        limit: u64,
    },
    /// An address is in no segment that the file fills.
    #[error("{what} at address {address:#x} is in no loaded segment")]
    Unmapped {
        /// What was looked for.
        what: &'static str,
        /// Virtual address as linked.
        address: u64,
    },
    /// A field contradicts the format.
    #[error("malformed {0}")]
    Malformed(&'static str),
}

/// Reads at an offset, without moving a cursor.
pub trait ReadAt {
    /// Size in bytes.
    ///
    /// # Errors
    /// What the system said.
    fn size(&self) -> io::Result<u64>;
    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` when the source ends before; what the system said.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

impl ReadAt for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, buffer, offset)
    }
}

impl ReadAt for Vec<u8> {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).ok();
        let bytes = start
            .and_then(|start| self.get(start..)?.get(..buffer.len()))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}

/// Instruction set of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// AMD64.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
    /// Any other, by its `e_machine` number.
    Other(u16),
}

/// A part of the file that is loaded into memory.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    address: u64,
    /// Bytes that come from the file; the rest of the memory is zero.
    size: u64,
    executable: bool,
}

impl Segment {
    /// Bytes of the file from `address` to the segment's end.
    fn left(&self, address: u64) -> Option<u64> {
        let within = address.checked_sub(self.address)?;
        self.size.checked_sub(within).filter(|left| *left > 0)
    }
}

/// An ELF image.
pub struct ElfView {
    source: Box<dyn ReadAt + Send + Sync>,
    length: u64,
    arch: Arch,
    /// Linked to a fixed address: pointers in the file need no relocation.
    fixed: bool,
    segments: Vec<Segment>,
    sections: Vec<SectionHeader64<LE>>,
    dynamic: Option<(u64, u64)>,
    unwind_index: Option<u64>,
    build_id: Option<String>,
}

impl fmt::Debug for ElfView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElfView")
            .field("length", &self.length)
            .field("arch", &self.arch)
            .field("build_id", &self.build_id)
            .finish_non_exhaustive()
    }
}

impl ElfView {
    /// Reads the headers of the image in `file`. The file stays open: it is
    /// the same image even if its name is given to another one.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn open(file: File) -> Result<Self, ElfError> {
        Self::new(Box::new(file))
    }

    /// Reads the headers of the image in `source`.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn new(source: Box<dyn ReadAt + Send + Sync>) -> Result<Self, ElfError> {
        let what = "the ELF header";
        let length = source.size().map_err(|source| ElfError::Read {
            what,
            offset: 0,
            source,
        })?;
        let mut view = Self {
            source,
            length,
            arch: Arch::Other(0),
            fixed: false,
            segments: Vec::new(),
            sections: Vec::new(),
            dynamic: None,
            unwind_index: None,
            build_id: None,
        };
        if view.bytes(what, 0, 4).ok().as_deref() != Some(&format::ELFMAG) {
            return Err(ElfError::NotElf);
        }
        let header: FileHeader64<LE> = view.record(what, 0)?;
        view.read_kind(&header)?;
        view.read_program_headers(&header)?;
        view.read_section_headers(&header)?;
        Ok(view)
    }

    /// The instruction set.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The build-id in lower-case hexadecimal, where the linker wrote one.
    pub fn build_id(&self) -> Option<&str> {
        self.build_id.as_deref()
    }

    /// Offset in the file of the byte at virtual address `address`.
    pub fn file_offset(&self, address: u64) -> Option<u64> {
        let (segment, _) = self.segment(address)?;
        segment.offset.checked_add(address - segment.address)
    }

    /// Whether `address` is in a segment that is loaded as code.
    pub fn is_executable(&self, address: u64) -> bool {
        self.segment(address)
            .is_some_and(|(segment, _)| segment.executable)
    }

    /// Code from `address`: `size` bytes, or fewer at the end of the segment,
    /// and never more than 1 MiB.
    ///
    /// # Errors
    /// [`ElfError::Unmapped`] when no code is there.
    pub fn code(&self, address: u64, size: u64) -> Result<Vec<u8>, ElfError> {
        let what = "code";
        let unmapped = ElfError::Unmapped { what, address };
        let (segment, left) = self.segment(address).ok_or(unmapped)?;
        if !segment.executable {
            return Err(ElfError::Unmapped { what, address });
        }
        let offset = self.mapped(what, address)?;
        self.bytes(what, offset, size.min(left).min(MAX_CODE))
    }

    /// Streams the image's read-only data, in chunks that overlap by `overlap`
    /// bytes, until `visit` returns true or `limit` bytes were read.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn scan_read_only_data(
        &self,
        limit: u64,
        overlap: u64,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), ElfError> {
        let mut budget = limit;
        for section in &self.sections {
            let flags = section.sh_flags.get(LE).0;
            let kinds = format::SHF_ALLOC.0 | format::SHF_WRITE.0 | format::SHF_EXECINSTR.0;
            if section.sh_type.get(LE) != format::SHT_PROGBITS
                || flags & kinds != format::SHF_ALLOC.0
            {
                continue;
            }
            let size = section.sh_size.get(LE).min(budget);
            budget -= size;
            let start = section.sh_offset.get(LE);
            let mut done = 0;
            while done < size {
                let wanted = (CHUNK + overlap).min(size - done);
                if visit(&self.bytes("read-only data", start.saturating_add(done), wanted)?) {
                    return Ok(());
                }
                done += CHUNK;
            }
        }
        Ok(())
    }

    fn read_kind(&mut self, header: &FileHeader64<LE>) -> Result<(), ElfError> {
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

    fn read_program_headers(&mut self, header: &FileHeader64<LE>) -> Result<(), ElfError> {
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
                format::PT_LOAD => self.segments.push(Segment {
                    offset,
                    address,
                    size,
                    executable: header.p_flags.get(LE).0 & format::PF_X.0 != 0,
                }),
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

    fn read_section_headers(&mut self, header: &FileHeader64<LE>) -> Result<(), ElfError> {
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

    fn segment(&self, address: u64) -> Option<(&Segment, u64)> {
        let mut found = self.segments.iter();
        found.find_map(|segment| Some((segment, segment.left(address)?)))
    }

    fn mapped(&self, what: &'static str, address: u64) -> Result<u64, ElfError> {
        self.file_offset(address)
            .ok_or(ElfError::Unmapped { what, address })
    }

    /// A range of the file. `size` must be bounded by the caller.
    fn bytes(&self, what: &'static str, offset: u64, size: u64) -> Result<Vec<u8>, ElfError> {
        let truncated = || ElfError::Truncated { what, offset, size };
        if offset.checked_add(size).is_none_or(|end| end > self.length) {
            return Err(truncated());
        }
        let mut bytes = vec![0; usize::try_from(size).map_err(|_| truncated())?];
        match self.source.read_exact_at(&mut bytes, offset) {
            Ok(()) => Ok(bytes),
            // The file shrank after its size was taken.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(truncated()),
            Err(source) => Err(ElfError::Read {
                what,
                offset,
                source,
            }),
        }
    }

    fn record<T: Pod>(&self, what: &'static str, offset: u64) -> Result<T, ElfError> {
        let bytes = self.bytes(what, offset, size_of::<T>() as u64)?;
        let record = records(&bytes).first().copied();
        record.ok_or(ElfError::Malformed(what))
    }

    /// Streams a table of fixed-size records, `size` bytes from `offset`.
    fn stream<T: Pod>(
        &self,
        what: &'static str,
        offset: u64,
        size: u64,
        mut visit: impl FnMut(&[T]) -> Result<(), ElfError>,
    ) -> Result<(), ElfError> {
        check_table(what, size)?;
        let mut done = 0;
        while done < size {
            let chunk = CHUNK.min(size - done);
            let bytes = self.bytes(what, offset.saturating_add(done), chunk)?;
            visit(records(&bytes))?;
            done += chunk;
        }
        Ok(())
    }
}

fn check_table(what: &'static str, size: u64) -> Result<(), ElfError> {
    if size > MAX_TABLE {
        return Err(ElfError::TooLarge {
            what,
            size,
            limit: MAX_TABLE,
        });
    }
    Ok(())
}

/// The whole records in `bytes`. The records of `object` are byte arrays, so
/// that alignment cannot fail.
fn records<T: Pod>(bytes: &[u8]) -> &[T] {
    let count = bytes.len() / size_of::<T>().max(1);
    pod::slice_from_bytes(bytes, count).map_or(&[], |(records, _)| records)
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

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
