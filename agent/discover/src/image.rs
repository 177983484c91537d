//! Executable files that processes map.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use tlsprof_common::{Device, ImageId};

use super::process::without_deleted;
use super::{Error, ProcRoot};
use tlsprof_common::Pid;

pub(crate) mod open;
pub use open::{OpenError, OpenImage};

/// Images of one process that are looked at; more are ignored. The largest
/// servers map some hundreds.
pub(crate) const MAX_IMAGES: usize = 1024;

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
    /// from one. JIT code in a memfd is one too, and is recognised by not being ELF.
    pub(crate) fn is_image(&self) -> bool {
        let path = self.path.as_os_str().as_bytes();
        let system_v = self.deleted && path.len() == 13 && path.starts_with(b"/SYSV");
        let anonymous = system_v || path == b"/dev/zero" || path == b"/anon_hugepage";
        self.inode != 0 && path.starts_with(b"/") && !anonymous
    }
}

/// The executable file mappings in the text of /proc/PID/maps
/// (proc_pid_maps(5)), the first of each image, at most [`MAX_IMAGES`]. Lines of
/// another form are skipped.
pub(crate) fn parse_maps(text: &[u8]) -> Vec<Mapping> {
    let mut seen = HashSet::new();
    all_mappings(text)
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

/// All executable file mappings, several of one image included.
fn all_mappings(maps: &[u8]) -> impl Iterator<Item = Mapping> {
    maps.split(|&byte| byte == b'\n').filter_map(parse_line)
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

#[cfg(test)]
mod tests;
