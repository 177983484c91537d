//! Executable files that processes map.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::proc_root::is_gone;
use super::process::without_deleted;
use super::{Error, ProcRoot};
use crate::evidence::Pid;

/// Images of one process that are looked at; more are ignored. The largest
/// servers map some hundreds.
pub const MAX_IMAGES: usize = 1024;

/// A block device, or the number that stands for a file system without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Device {
    /// Major number; 0 for file systems without a block device.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

/// What tells images apart while a process maps them. The kernel may use the
/// inode number for another file as soon as none does, and no probe is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageId {
    /// The file system's device, as /proc/PID/maps shows it.
    pub device: Device,
    /// The inode number, as /proc/PID/maps shows it.
    pub inode: u64,
}

impl fmt::Display for ImageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:02x}:{:02x}:{}",
            self.device.major, self.device.minor, self.inode
        )
    }
}

/// An executable mapping of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Address after the last one.
    pub end: u64,
    /// Offset of `start` in the file, in bytes.
    pub file_offset: u64,
    /// The file system's device.
    pub device: Device,
    /// The inode number.
    pub inode: u64,
    /// Path as the process sees it.
    pub path: PathBuf,
    /// True if no path leads to the file any more: it was removed or replaced.
    pub deleted: bool,
}

impl Mapping {
    /// What it maps.
    pub fn image(&self) -> ImageId {
        ImageId {
            device: self.device,
            inode: self.inode,
        }
    }

    /// False for what has an inode number but is no file with code: shared
    /// anonymous memory, System V shared memory, anonymous huge pages.
    ///
    /// A memfd is an image: some runtimes and loaders run their real programs
    /// from one. JIT code in a memfd is one too, and is told by not being ELF.
    pub fn is_image(&self) -> bool {
        let path = self.path.as_os_str().as_bytes();
        let system_v = self.deleted && path.len() == 13 && path.starts_with(b"/SYSV");
        let anonymous = system_v || path == b"/dev/zero" || path == b"/anon_hugepage";
        self.inode != 0 && path.starts_with(b"/") && !anonymous
    }
}

/// The executable file mappings in the text of /proc/PID/maps
/// (proc_pid_maps(5)), the first of each image, at most [`MAX_IMAGES`]. Lines of
/// another form are skipped.
pub fn parse_maps(text: &[u8]) -> Vec<Mapping> {
    let mut seen = HashSet::new();
    text.split(|&byte| byte == b'\n')
        .filter_map(parse_line)
        .filter(|mapping| mapping.is_image() && seen.insert(mapping.image()))
        .take(MAX_IMAGES)
        .collect()
}

/// `START-END rwxp OFFSET MAJOR:MINOR INODE      PATH`; None unless executable.
fn parse_line(line: &[u8]) -> Option<Mapping> {
    // The path may hold spaces, and bytes that are not UTF-8; the rest does not.
    let mut fields = line.splitn(6, |&byte| byte == b' ');
    let mut field = || std::str::from_utf8(fields.next()?).ok();
    let (start, end) = field()?.split_once('-')?;
    if field()?.as_bytes().get(2) != Some(&b'x') {
        return None;
    }
    let offset = field()?;
    let (major, minor) = field()?.split_once(':')?;
    let inode = field()?;
    let path = fields.next()?.trim_ascii_start();
    let (path, deleted) = without_deleted(unescape(path));
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        file_offset: u64::from_str_radix(offset, 16).ok()?,
        device: Device {
            major: u32::from_str_radix(major, 16).ok()?,
            minor: u32::from_str_radix(minor, 16).ok()?,
        },
        inode: inode.parse().ok()?,
        path,
        deleted,
    })
}

/// The kernel writes a newline in a path as `\012`, and escapes nothing else.
/// A path that really holds these four characters comes out wrong; it is then
/// only shown wrong, as files are opened by identity.
fn unescape(path: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let [first, after @ ..] = rest {
        if let Some(after) = rest.strip_prefix(b"\\012") {
            bytes.push(b'\n');
            rest = after;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    OsStr::from_bytes(&bytes).into()
}

/// Why an image could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The process does not map it any more, or is gone.
    #[error("process {pid} does not map {} any more", path.display())]
    Gone {
        /// The process.
        pid: Pid,
        /// Path of the image.
        path: PathBuf,
    },
    /// What is found under its path is another file.
    #[error("{} of process {pid} was replaced, and the kernel does not open the mapping: {source}", path.display())]
    Replaced {
        /// The process.
        pid: Pid,
        /// Path of the image.
        path: PathBuf,
        /// Why the mapping itself could not be opened.
        source: io::Error,
    },
    /// Something in /proc could not be read.
    #[error(transparent)]
    Proc(#[from] Error),
}

/// An image that was opened, and is the one that was mapped.
#[derive(Debug)]
pub struct OpenImage {
    /// For reading.
    pub file: File,
}

impl OpenImage {
    /// A path that leads to this very file for as long as it is open, in this
    /// process: for system calls that take a path, such as attaching uprobes.
    pub fn path(&self) -> PathBuf {
        own_descriptor(&self.file)
    }
}

impl Mapping {
    /// Opens the image through process `pid`, which maps it, whatever has become
    /// of its path since, and in whatever mount namespace that is.
    ///
    /// It goes through `/proc/PID/map_files`, which names the mapping itself but
    /// needs `CAP_SYS_ADMIN` or `CAP_CHECKPOINT_RESTORE`; else through
    /// `/proc/PID/root`, where what is found must be the same file.
    ///
    /// # Errors
    /// [`OpenError`], says why.
    pub fn open(&self, proc: &ProcRoot, pid: Pid) -> Result<OpenImage, OpenError> {
        match self.open_mapping(proc, pid) {
            Ok(file) => Ok(OpenImage { file }),
            // The range is not one mapping any more: it was split, merged or unmapped.
            Err(e) if is_gone(&e) => self.open_elsewhere(proc, pid),
            Err(source) => self.open_path(proc, pid, source),
        }
    }

    /// `/proc/PID/map_files/START-END`.
    pub fn map_file(&self, proc: &ProcRoot, pid: Pid) -> PathBuf {
        proc.path(pid, format!("map_files/{:x}-{:x}", self.start, self.end))
    }

    fn open_mapping(&self, proc: &ProcRoot, pid: Pid) -> io::Result<File> {
        let (found, metadata) = find(&self.map_file(proc, pid), 0)?;
        // On overlayfs and btrfs, stat shows another device or inode than maps.
        // Then maps must show, once more, that the range is of this image.
        if metadata.ino() != self.inode || device(metadata.dev()) != self.device {
            let now = fs::read(proc.path(pid, "maps"))?;
            let same = |mapping: &Mapping| mapping.start == self.start && mapping.end == self.end;
            if !all_mappings(&now)
                .filter(same)
                .any(|mapping| mapping.image() == self.image())
            {
                return Err(io::ErrorKind::NotFound.into());
            }
        }
        open_for_reading(&found)
    }

    fn open_elsewhere(&self, proc: &ProcRoot, pid: Pid) -> Result<OpenImage, OpenError> {
        let gone = || OpenError::Gone {
            pid,
            path: self.path.clone(),
        };
        let maps = proc.read(pid, "maps")?.ok_or_else(gone)?;
        let mut all = all_mappings(&maps);
        let other = all
            .find(|mapping| mapping.image() == self.image())
            .ok_or_else(gone)?;
        match other.open_mapping(proc, pid) {
            Ok(file) => Ok(OpenImage { file }),
            Err(source) => self.open_path(proc, pid, source),
        }
    }

    /// The process may have replaced any part of its path by a link to elsewhere,
    /// so that only the identity of what is found counts. The device may differ
    /// only on file systems without a block device (overlayfs, btrfs), where
    /// maps and stat disagree: the inode alone must do there.
    fn open_path(
        &self,
        proc: &ProcRoot,
        pid: Pid,
        source: io::Error,
    ) -> Result<OpenImage, OpenError> {
        let inside = self.path.strip_prefix("/").unwrap_or(&self.path);
        let open = || {
            let (found, metadata) = find(&proc.path(pid, "root").join(inside), libc::O_NOFOLLOW)?;
            let found_on = device(metadata.dev());
            if metadata.ino() != self.inode || (found_on != self.device && found_on.major != 0) {
                return Err(io::ErrorKind::NotFound.into());
            }
            open_for_reading(&found)
        };
        match open() {
            Ok(file) => Ok(OpenImage { file }),
            Err(_) => Err(OpenError::Replaced {
                pid,
                path: self.path.clone(),
                source,
            }),
        }
    }
}

/// All executable file mappings, several of one image included.
fn all_mappings(maps: &[u8]) -> impl Iterator<Item = Mapping> {
    maps.split(|&byte| byte == b'\n').filter_map(parse_line)
}

/// Finds a regular file without opening it, which could block (a FIFO) or do
/// something (a tape, a watchdog).
fn find(path: &Path, flags: i32) -> io::Result<(File, fs::Metadata)> {
    let found = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | flags)
        .open(path)?;
    let metadata = found.metadata()?;
    if metadata.is_file() {
        Ok((found, metadata))
    } else {
        Err(io::ErrorKind::InvalidInput.into())
    }
}

/// Opens what was found: the same file, whatever its path leads to by now.
fn open_for_reading(found: &File) -> io::Result<File> {
    // std adds O_CLOEXEC.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(own_descriptor(found))
}

fn own_descriptor(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn device(number: u64) -> Device {
    Device {
        major: libc::major(number),
        minor: libc::minor(number),
    }
}

impl ProcRoot {
    /// The images that a process maps; None if it is gone.
    ///
    /// # Errors
    /// [`Error::Read`] if the kernel denies it.
    pub fn images(&self, pid: Pid) -> Result<Option<Vec<Mapping>>, Error> {
        Ok(self.read(pid, "maps")?.map(|text| parse_maps(&text)))
    }
}
