//! Where functions begin, from the index of the unwind tables: the only thing
//! that a stripped image still says about functions that it does not export.

use object::LittleEndian as LE;
use object::endian::{I32, U32};

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
        let Some(base) = self.unwind_index else {
            return Ok(None);
        };
        let offset = self.mapped(WHAT, base)?;
        if self.record::<[u8; 4]>(WHAT, offset)? != ENCODINGS {
            return Ok(None);
        }
        let [_, count] = self.record::<[U32<LE>; 2]>(WHAT, offset.saturating_add(4))?;
        let table = offset.saturating_add(12);
        let count = u64::from(count.get(LE));
        let start = |index: u64| -> Result<u64, ElfError> {
            let entry = table.saturating_add(index * 8);
            let [start, _] = self.record::<[I32<LE>; 2]>(WHAT, entry)?;
            Ok(base.wrapping_add_signed(i64::from(start.get(LE))))
        };
        let index = first_from(count, |index| Ok(start(index)? >= address))?;
        if index == count || start(index)? != address {
            return Ok(None);
        }
        let next = match index + 1 {
            next if next < count => start(next)?.checked_sub(address),
            _ => self.segment(address).map(|(_, left)| left),
        };
        Ok(next.filter(|size| *size > 0))
    }
}

/// The first of `count` indices for which `reached` holds, by halving.
fn first_from(
    count: u64,
    reached: impl Fn(u64) -> Result<bool, ElfError>,
) -> Result<u64, ElfError> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if reached(middle)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}
