//! Reads files of /proc.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Error;
use super::container::Containers;
use tlsprof_common::Pid;

/// Where procfs is mounted.
///
/// It must be the procfs of the initial pid namespace: the kernel side reports
/// process ids of that namespace.
#[derive(Clone, Debug)]
pub struct ProcRoot {
    path: PathBuf,
    containers: Arc<Containers>,
}

impl Default for ProcRoot {
    /// `/proc`.
    fn default() -> Self {
        Self::new("/proc")
    }
}

impl ProcRoot {
    /// A procfs, or a copy of parts of one, at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        // By the first process: an agent in a container sees the host's files only so, and one
        // without privileges not even its own.
        let roots = vec![path.join("1/root"), PathBuf::from("/")];
        Self {
            path,
            containers: Arc::new(Containers::new(roots)),
        }
    }

    /// Names of the host's containers.
    pub(super) fn containers(&self) -> &Containers {
        &self.containers
    }

    /// All process ids: thread-group leaders, kernel threads included, ascending.
    ///
    /// # Errors
    /// [`Error::Read`] if the directory itself cannot be read.
    pub fn pids(&self) -> Result<Vec<Pid>, Error> {
        let failed = |source| Error::Read {
            path: self.path.clone(),
            source,
        };
        let mut pids = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            pids.extend(name.to_str().and_then(|name| name.parse::<Pid>().ok()));
        }
        pids.sort_unstable();
        Ok(pids)
    }

    /// Path of `name` in the directory of process `pid`.
    pub(super) fn path(&self, pid: Pid, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(pid.to_string()).join(name)
    }

    /// The content of a file; None if the process is gone.
    pub(super) fn read(&self, pid: Pid, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let path = self.path(pid, name);
        unless_gone(read_small(&path), path)
    }

    /// A file, opened; None if the process is gone.
    pub(super) fn open(&self, pid: Pid, name: &str) -> Result<Option<File>, Error> {
        let path = self.path(pid, name);
        unless_gone(File::open(&path), path)
    }

    /// The target of a link; None if the process is gone.
    pub(super) fn read_link(&self, pid: Pid, name: &str) -> Result<Option<PathBuf>, Error> {
        let path = self.path(pid, name);
        unless_gone(fs::read_link(&path), path)
    }

    /// The root folder of a process, as this one reaches it.
    pub fn root_of(&self, pid: Pid) -> PathBuf {
        self.path(pid, "root")
    }

    /// The network namespace of a process; None if it is gone or may not be read.
    pub fn network_namespace(&self, pid: Pid) -> Option<PathBuf> {
        self.read_link(pid, "ns/net").ok().flatten()
    }

    /// The same as a file.
    ///
    /// # Errors
    /// What the system says: the process may be gone, or may not be read.
    pub fn open_network_namespace(&self, pid: Pid) -> io::Result<File> {
        File::open(self.path(pid, "ns/net"))
    }

    /// The network namespace of this process; None where /proc does not show it.
    pub fn own_network_namespace(&self) -> Option<PathBuf> {
        fs::read_link(self.path.join("self/ns/net")).ok()
    }
}

/// The content of a file in /proc, whose length the kernel does not report: as a whole
/// in one call mostly. [`fs::read`] begins with 32 bytes.
fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::with_capacity(1024);
    // Not of the file itself, which would ask for the length first.
    let mut all = File::open(path)?.take(u64::MAX);
    all.read_to_end(&mut content)?;
    Ok(content)
}

/// Tells a process that is gone from a failure.
pub(super) fn unless_gone<T>(result: io::Result<T>, path: PathBuf) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) if is_gone(&e) => Ok(None),
        Err(source) => Err(Error::Read { path, source }),
    }
}

/// ESRCH comes from files that were opened while the process was there.
pub(super) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}
