//! Executable files that processes map, as they map them: `PERF_RECORD_MMAP2`
//! records of a dummy event on every CPU (perf_event_open(2), `mmap2`).

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, Sampler};

/// Per CPU; a record is about 120 bytes, so this holds some 500 mappings.
const RING_BYTES: usize = 64 * 1024;

/// One executable mapping of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// The process.
    pub pid: u32,
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// Offset of the mapping in the file.
    pub file_offset: u64,
    /// Device of the file: major, minor.
    pub device: (u32, u32),
    /// Inode of the file.
    pub inode: u64,
    /// Path as the process sees it.
    pub path: PathBuf,
}

/// The watch on all CPUs.
pub struct Watch {
    rings: Vec<Sampler>,
}

impl Watch {
    /// Starts to watch all CPUs that are online.
    ///
    /// # Errors
    ///
    /// When the kernel refuses perf events (rights, perf_event_paranoid).
    pub fn start() -> io::Result<Self> {
        let cpus = aya::util::online_cpus().map_err(|(_, error)| error)?;
        let rings = cpus
            .into_iter()
            .map(|cpu| ring(cpu as usize))
            .collect::<io::Result<Vec<_>>>()?;
        Ok(Self { rings })
    }

    /// Hands each new mapping to `take`; returns how many records were lost.
    pub fn drain(&mut self, mut take: impl FnMut(Mapped)) -> u64 {
        let mut lost = 0;
        for ring in &mut self.rings {
            while let Some(record) = ring.next_record() {
                match record.parse_record() {
                    Ok(Record::Mmap2(mmap)) => {
                        if let Some(mapped) = mapped(&mmap) {
                            take(mapped);
                        }
                    }
                    Ok(Record::Lost(record)) => lost += record.lost,
                    Ok(_) | Err(_) => {}
                }
            }
        }
        lost
    }
}

fn ring(cpu: usize) -> io::Result<Sampler> {
    Builder::new(Software::DUMMY)
        .any_pid()
        .one_cpu(cpu)
        .exclude_kernel(true)
        .exclude_hv(true)
        .mmap(true)
        .mmap2(true)
        .enabled(true)
        .build()?
        .sampled(RING_BYTES)
}

/// None for what is not a file (`[vdso]`, `//anon`).
fn mapped(mmap: &perf_event::data::Mmap2<'_>) -> Option<Mapped> {
    let (major, minor, inode) = (mmap.maj()?, mmap.min()?, mmap.ino()?);
    if inode == 0 || mmap.filename.first() != Some(&b'/') {
        return None;
    }
    let name: Vec<u8> = mmap
        .filename
        .iter()
        .copied()
        .take_while(|byte| *byte != 0)
        .collect();
    Some(Mapped {
        pid: mmap.pid,
        start: mmap.addr,
        end: mmap.addr + mmap.len,
        file_offset: mmap.pgoff,
        device: (major, minor),
        inode,
        path: PathBuf::from(OsString::from_vec(name)),
    })
}
