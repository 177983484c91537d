//! Executable files that processes map, as they map them: `PERF_RECORD_MMAP2`
//! records of a dummy event on every CPU (perf_event_open(2), `mmap2`).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use aya::util::online_cpus;

use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, Sampler};

/// Time between two looks at whether the events go on, at least: each interrupts its CPU.
const LOOKS: Duration = Duration::from_secs(5);

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

/// The watch on all CPUs that are on line.
pub struct Watch {
    by_cpu: BTreeMap<u32, Ring>,
    looked: Instant,
}

struct Ring {
    sampler: Sampler,
    /// For how long its event had been enabled when it was last looked at.
    enabled: Duration,
}

impl Ring {
    fn start(cpu: u32) -> io::Result<Self> {
        Ok(Self {
            sampler: ring(cpu as usize)?,
            enabled: Duration::ZERO,
        })
    }

    /// Whether its event is still enabled. The kernel switches the events of a CPU that
    /// goes off line off for good (`perf_event_exit_cpu`), and their time stands still.
    fn goes(&mut self) -> bool {
        let data = self.sampler.read_full().ok();
        let enabled = data.and_then(|data| data.time_enabled());
        let goes = enabled.is_some_and(|enabled| enabled > self.enabled);
        self.enabled = enabled.unwrap_or_default();
        goes
    }

    /// Hands each record to `take`; returns how many were lost.
    fn drain(&mut self, take: &mut impl FnMut(Mapped)) -> u64 {
        let mut lost = 0;
        while let Some(record) = self.sampler.next_record() {
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
        lost
    }
}

impl Watch {
    /// Starts to watch all CPUs that are on line.
    ///
    /// # Errors
    ///
    /// When the kernel refuses perf events (rights, perf_event_paranoid).
    pub fn start() -> io::Result<Self> {
        let cpus = online_cpus().map_err(|(_, error)| error)?.into_iter();
        let rings = cpus.map(|cpu| Ok((cpu, Ring::start(cpu)?)));
        Ok(Self {
            by_cpu: rings.collect::<io::Result<_>>()?,
            looked: Instant::now(),
        })
    }

    /// Hands each new mapping to `take`; returns how many records were lost.
    pub fn drain(&mut self, mut take: impl FnMut(Mapped)) -> u64 {
        let rings = self.by_cpu.values_mut();
        rings.map(|ring| ring.drain(&mut take)).sum()
    }

    /// Watches the CPUs that came on line since the last time. True if there were any: what was
    /// mapped there before was not seen. One that was off line only between two calls is found
    /// within [`LOOKS`].
    ///
    /// # Errors
    ///
    /// When the kernel lists no CPUs, or refuses one. It is tried again next time.
    pub fn follow_cpus(&mut self) -> io::Result<bool> {
        let cpus = online_cpus().map_err(|(_, error)| error)?;
        let looks = self.looked.elapsed() >= LOOKS;
        if looks {
            self.looked = Instant::now();
        }
        self.by_cpu
            .retain(|cpu, ring| cpus.contains(cpu) && (!looks || ring.goes()));
        let mut new = false;
        for cpu in cpus {
            if let Entry::Vacant(place) = self.by_cpu.entry(cpu) {
                place.insert(Ring::start(cpu)?);
                new = true;
            }
        }
        Ok(new)
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
