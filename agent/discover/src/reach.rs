//! Which processes can be looked into.

use std::fs::{self, File};
use std::io;

use super::{Error, ProcRoot};
use tlsprof_common::Pid;

/// Processes by whether they can be looked into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Processes with memory of their own.
    pub all: usize,
    /// Those of them of which the kernel says nothing but their names.
    pub closed: usize,
}

/// Tries to read the memory map and the list of open files of every process.
///
/// # Errors
/// [`Error::Read`] if /proc cannot be listed.
pub fn reach(proc: &ProcRoot) -> Result<Reach, Error> {
    let mut found = Reach::default();
    for pid in proc.pids()? {
        match open(proc, pid) {
            Ok(()) => found.all += 1,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                found.all += 1;
                found.closed += 1;
            }
            // It has ended.
            Err(_) => {}
        }
    }
    Ok(found)
}

fn open(proc: &ProcRoot, pid: Pid) -> io::Result<()> {
    File::open(proc.path(pid, "maps"))?;
    fs::read_dir(proc.path(pid, "fd")).map(|_| ())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_process_can_look_into_itself() {
        assert!(open(&ProcRoot::default(), std::process::id()).is_ok());
        let found = reach(&ProcRoot::default()).unwrap();
        assert!(found.closed < found.all, "{found:?}");
    }

    #[test]
    fn without_privileges_processes_with_more_are_closed() {
        let open = |all: bool| {
            let there = std::thread::spawn(move || {
                if !all {
                    tlsprof_common::privilege::give_up_all().unwrap();
                }
                reach(&ProcRoot::default()).unwrap()
            });
            let found = there.join().unwrap();
            found.all - found.closed
        };
        // The first is the test program itself or, if that is not root's, those of its user.
        assert!(open(false) <= open(true));
    }

    #[test]
    fn an_empty_folder_has_no_processes() {
        let folder = tempfile::tempdir().unwrap();
        let found = reach(&ProcRoot::new(folder.path())).unwrap();
        assert_eq!(found, Reach::default());
        assert!(reach(&ProcRoot::new(folder.path().join("none"))).is_err());
    }
}
