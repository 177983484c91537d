//! Which processes have given sockets open.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::PathBuf;

use super::listening::INIT;
use crate::ProcRoot;
use tlsprof_common::Pid;

impl ProcRoot {
    /// Those of the processes that have a socket open, for each of these inodes. The
    /// first process does not count where another one has the same socket.
    pub fn holders(
        &self,
        processes: impl IntoIterator<Item = Pid>,
        wanted: &BTreeSet<u64>,
    ) -> BTreeMap<u64, Vec<Pid>> {
        let mut holders: BTreeMap<u64, Vec<Pid>> = BTreeMap::new();
        for pid in processes {
            let open: BTreeSet<u64> = self.sockets(pid).unwrap_or_default().into_iter().collect();
            for socket in open.intersection(wanted) {
                holders.entry(*socket).or_default().push(pid);
            }
        }
        for pids in holders.values_mut() {
            if pids.len() > 1 {
                pids.retain(|pid| *pid != INIT);
            }
        }
        holders
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
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop")]

    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    fn process(tree: &Path, pid: Pid, sockets: &[u64]) {
        let folder = tree.join(pid.to_string()).join("fd");
        fs::create_dir_all(&folder).unwrap();
        symlink("/dev/null", folder.join("0")).unwrap();
        for (number, socket) in (3..).zip(sockets) {
            let link: i32 = number;
            symlink(format!("socket:[{socket}]"), folder.join(link.to_string())).unwrap();
        }
    }

    #[test]
    fn who_has_a_socket_is_found_and_the_first_process_gives_way() {
        let tree = tempfile::tempdir().unwrap();
        process(tree.path(), INIT, &[7, 8, 9]);
        process(tree.path(), 20, &[7, 7, 100]);
        process(tree.path(), 30, &[7]);
        let proc = ProcRoot::new(tree.path());
        let holders = proc.holders([INIT, 20, 30, 40], &BTreeSet::from([7, 8]));
        assert_eq!(
            holders,
            BTreeMap::from([(7, vec![20, 30]), (8, vec![INIT])])
        );
    }
}
