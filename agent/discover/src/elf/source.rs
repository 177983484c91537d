//! Where the bytes of an image come from.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

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
