//! A file that shows whether a load test is running on this host.
//!
//! A load test is a command that `tlsprof report` runs and profiles. The report holds a
//! read lock on the file while the command runs, and the agent asks the kernel whether
//! anybody does. So several reports may run at once, and one that is killed leaves
//! nothing behind: the kernel drops its lock. The time of the file is when the last
//! command was started. The command itself stays in the report: its arguments may hold
//! names and secrets.
//!
//! The lock is fcntl's, which belongs to the process: the command does not inherit
//! it, and asking (`F_GETLK`) takes none, so that the agent is never in the way.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::{FlockType, fcntl_getlk};

/// The file. Only root may write to /run, so that nobody else can put one there.
pub const PATH: &str = "/run/tlsprof/load-test";

/// What the agent knows of load tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadTests {
    /// Whether one is running.
    pub(crate) running: bool,
    /// When the last one began; None if there was none since the host started.
    pub began: Option<SystemTime>,
}

/// A load test is running, as long as this lives.
#[derive(Debug)]
pub struct Mark(#[expect(dead_code, reason = "the lock ends when it is closed")] File);

impl Mark {
    /// Says that a load test begins now.
    ///
    /// # Errors
    /// When the file at `path` cannot be made or locked: without root, or where its
    /// folder is read-only.
    pub fn set(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o755).create(folder)?;
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o644)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)?;
        fcntl_lock(&file, FlockOperation::NonBlockingLockShared)?;
        file.set_modified(SystemTime::now())?;
        Ok(Self(file))
    }
}

/// What the file at `path` says; nothing where there is none.
///
/// # Errors
/// When it cannot be read.
pub fn look(path: &Path) -> io::Result<LoadTests> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LoadTests::default()),
        Err(error) => return Err(error),
    };
    // A write lock would conflict with any read lock.
    let holder = fcntl_getlk(&file, &FlockType::WriteLock.into())?;
    Ok(LoadTests {
        running: holder.is_some(),
        began: Some(file.metadata()?.modified()?),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn without_a_file_there_was_no_load_test() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none");
        assert_eq!(look(&path).unwrap(), LoadTests::default());
    }

    /// That others see it: tests/e2e/test_load_test.py. A process does not conflict
    /// with itself.
    #[test]
    fn a_mark_leaves_the_time_of_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run").join("load-test");
        let before = SystemTime::now();
        drop(Mark::set(&path).unwrap());
        let seen = look(&path).unwrap();
        assert!(!seen.running);
        assert!(seen.began.unwrap() >= before);
    }

    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (victim, path) = (folder.path().join("victim"), folder.path().join("mark"));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &path).unwrap();
        assert!(Mark::set(&path).is_err());
    }
}
