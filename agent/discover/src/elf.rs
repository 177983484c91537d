//! A bounded view of an ELF image, good enough to find functions and to place
//! probes, and safe on hostile input.
//!
//! The file is never mapped: another process may truncate it, and touching a
//! mapped page beyond the new end raises SIGBUS. Everything is read in ranges
//! of bounded size, and tables are streamed in chunks.

mod bounds;
mod calls;
mod error;
mod frames;
mod functions;
mod go;
mod halving;
mod headers;
mod imports;
mod relocations;
mod source;
mod symbols;
mod unwind;

use std::fs::File;
use std::{fmt, io};

use object::LittleEndian as LE;
use object::elf::{self as format, FileHeader64, SectionHeader64};
use object::pod::{self, Pod};

pub use bounds::{Around, Bounds};
pub use calls::Call;
pub use error::ElfError;
pub use functions::Function;
pub use imports::ImportError;
pub use source::ReadAt;
pub use symbols::{Symbol, Symbols};

/// Bytes read at once while a table is streamed; a multiple of the size of
/// every table entry (2, 8, 16, 24).
const CHUNK: u64 = 3 << 18;
/// Largest table that is streamed: bounds the time spent on one image.
const MAX_TABLE: u64 = 512 << 20;
/// Largest note segment and dynamic section that is read.
const MAX_SMALL_TABLE: u64 = 64 << 10;
/// Most code that is read of one function.
const MAX_CODE: u64 = 1 << 20;

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
    writable: bool,
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
    /// Index of the section that holds the names of sections.
    section_names: usize,
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
            section_names: 0,
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
    pub(crate) fn scan_read_only_data(
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

#[cfg(any(test, feature = "sample"))]
pub mod fixture;
#[cfg(test)]
mod tests;
