//! Where functions begin, from the index of the unwind tables: the only thing
//! that a stripped image still says about functions that it does not export.

use object::LittleEndian as LE;
use object::endian::{I32, U32};

use super::halving::first_from;
use super::{ElfError, ElfView};

/// The only encodings that linkers write (Linux Standard Base Core 5.0,
/// 10.6.2): version 1; `eh_frame_ptr` relative to itself, `fde_count` absolute,
/// the table relative to the section, all of 32 bits.
const ENCODINGS: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
const WHAT: &str = "the unwind index";

impl ElfView {
    /// Size of the function that begins at `address`, up to the beginning of
    /// the next: its code and the padding after it. None when the image does
    /// not say that a function begins there.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn function_extent(&self, address: u64) -> Result<Option<u64>, ElfError> {
        let Some(index) = self.unwind_index()? else {
            return Ok(None);
        };
        let at = first_from(index.count, |at| Ok(index.start(at)? >= address))?;
        if at == index.count || index.start(at)? != address {
            return Ok(None);
        }
        let next = match at + 1 {
            next if next < index.count => index.start(next)?.checked_sub(address),
            _ => self.segment(address).map(|(_, left)| left),
        };
        Ok(next.filter(|size| *size > 0))
    }

    /// Where the function begins that `address` is in, or in the padding after. None when
    /// the image does not say.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn function_start(&self, address: u64) -> Result<Option<u64>, ElfError> {
        Ok(self.function_record(address)?.map(|(start, _)| start))
    }

    /// Where the function begins that `address` is in, or in what comes after it, and the address of its
    /// record in the unwind table. None when the image does not say.
    pub(super) fn function_record(&self, address: u64) -> Result<Option<(u64, u64)>, ElfError> {
        let Some(index) = self.unwind_index()? else {
            return Ok(None);
        };
        let after = first_from(index.count, |at| Ok(index.start(at)? > address))?;
        let at = after.checked_sub(1);
        at.map(|at| index.entry(at)).transpose()
    }

    pub(super) fn unwind_index(&self) -> Result<Option<Index<'_>>, ElfError> {
        let Some(base) = self.unwind_index else {
            return Ok(None);
        };
        let offset = self.mapped(WHAT, base)?;
        if self.record::<[u8; 4]>(WHAT, offset)? != ENCODINGS {
            return Ok(None);
        }
        let [_, count] = self.record::<[U32<LE>; 2]>(WHAT, offset.saturating_add(4))?;
        Ok(Some(Index {
            image: self,
            base,
            table: offset.saturating_add(12),
            count: u64::from(count.get(LE)),
        }))
    }
}

/// The index, sorted by the beginnings of functions.
pub(super) struct Index<'a> {
    image: &'a ElfView,
    /// Address that its entries are relative to.
    base: u64,
    /// Offset of its first entry in the file.
    table: u64,
    count: u64,
}

impl Index<'_> {
    /// Beginning of the function of that entry.
    fn start(&self, at: u64) -> Result<u64, ElfError> {
        self.entry(at).map(|(start, _)| start)
    }

    /// The same, and the address of its record.
    fn entry(&self, at: u64) -> Result<(u64, u64), ElfError> {
        let entry = self.table.saturating_add(at * 8);
        let entry = self.image.record::<[I32<LE>; 2]>(WHAT, entry)?;
        let [start, record] =
            entry.map(|one| self.base.wrapping_add_signed(i64::from(one.get(LE))));
        Ok((start, record))
    }
}
