//! Opens the very file that a process maps.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tlsprof_common::Device;

use super::{Mapping, all_mappings};
use crate::proc_root::is_gone;
use crate::{Error, ProcRoot};
use tlsprof_common::Pid;

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
    #[error("{} of process {pid} was replaced, and the kernel does not open the mapping", path.display())]
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
    pub(crate) fn map_file(&self, proc: &ProcRoot, pid: Pid) -> PathBuf {
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

    /// By path: in the process's root directory, else in the agent's own, where
    /// the path of a process leads that has called chroot.
    ///
    /// The process may have replaced any part of its path by a link to elsewhere,
    /// so that only the identity of what is found counts.
    fn open_path(
        &self,
        proc: &ProcRoot,
        pid: Pid,
        source: io::Error,
    ) -> Result<OpenImage, OpenError> {
        let inside = self.path.strip_prefix("/").unwrap_or(&self.path);
        let paths = [proc.path(pid, "root").join(inside), self.path.clone()];
        match paths.iter().find_map(|path| self.open_same_file(path).ok()) {
            Some(file) => Ok(OpenImage { file }),
            None => {
                let path = self.path.clone();
                Err(OpenError::Replaced { pid, path, source })
            }
        }
    }

    /// The device may differ only on file systems without a block device
    /// (overlayfs, btrfs), where maps and stat disagree: the inode alone must do
    /// there.
    fn open_same_file(&self, path: &Path) -> io::Result<File> {
        let (found, metadata) = find(path, libc::O_NOFOLLOW)?;
        let found_on = device(metadata.dev());
        let same_device = found_on == self.device || found_on.major == 0;
        if metadata.ino() == self.inode && same_device {
            open_for_reading(&found)
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }
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

pub(crate) fn device(number: u64) -> Device {
    Device {
        major: libc::major(number),
        minor: libc::minor(number),
    }
}
