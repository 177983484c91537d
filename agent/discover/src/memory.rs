//! Reads code that processes have made for themselves, and that is in no file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::ProcRoot;
use tlsprof_common::Pid;

/// No machine has smaller pages; what can be read ends with one.
const PAGE: u64 = 4096;

/// Memory around an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Where the address is in `bytes`.
    pub at: usize,
}

impl ProcRoot {
    /// At most `reach` bytes before an address of a process, and as many from it on: as far as they
    /// can be read without a gap.
    ///
    /// # Errors
    /// What is at the address cannot be read, or the process is gone (proc_pid_mem(5)).
    pub fn memory_around(&self, pid: Pid, address: u64, reach: usize) -> io::Result<Surroundings> {
        let memory = File::open(self.path(pid, "mem"))?;
        let reach = u64::try_from(reach).unwrap_or_default();
        let end = address.saturating_add(reach);
        let mut begin = address.saturating_sub(reach);
        loop {
            let bytes = read(&memory, begin, end);
            let at = usize::try_from(address - begin).unwrap_or(usize::MAX);
            if at < bytes.len() {
                return Ok(Surroundings { bytes, at });
            }
            let length = u64::try_from(bytes.len()).unwrap_or_default();
            // On to the page behind the one that cannot be read.
            let next = (begin.saturating_add(length) / PAGE + 1).checked_mul(PAGE);
            begin = next
                .filter(|&next| next <= address)
                .ok_or(io::ErrorKind::UnexpectedEof)?;
        }
    }
}

/// From `begin` on, up to `end` or to what cannot be read.
fn read(memory: &File, begin: u64, end: u64) -> Vec<u8> {
    let length = usize::try_from(end.saturating_sub(begin)).unwrap_or_default();
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let offset = begin.saturating_add(u64::try_from(filled).unwrap_or_default());
        match memory.read_at(rest, offset) {
            Ok(0) | Err(_) => break,
            Ok(more) => filled += more,
        }
    }
    bytes.truncate(filled);
    bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::*;

    fn around(address: u64, reach: usize) -> io::Result<Surroundings> {
        ProcRoot::default().memory_around(std::process::id(), address, reach)
    }

    #[test]
    fn memory_is_read_around_an_address() {
        let known: Vec<u8> = (0..=255).collect();
        let address = known.as_ptr() as u64 + 100;
        let found = around(address, 50).unwrap();
        assert_eq!((&found.bytes[..], found.at), (&known[50..150], 50));
    }

    #[test]
    fn gaps_end_what_is_read() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        // The first mapping begins behind nothing.
        let begin = u64::from_str_radix(maps.split('-').next().unwrap(), 16).unwrap();
        let found = around(begin + 3, 100).unwrap();
        assert_eq!((found.bytes.len(), found.at), (103, 3));
        let found = around(begin + PAGE + 3, 6000).unwrap();
        assert_eq!(found.at, 4099);
        assert!(around(begin - 1, 100).is_err());
        assert!(around(0, 100).is_err());
        assert!(around(u64::MAX, 100).is_err());
    }

    #[test]
    fn a_process_that_is_gone_has_none() {
        let none = ProcRoot::default().memory_around(Pid::MAX, 0x1000, 100);
        assert_eq!(none.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
