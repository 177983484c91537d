//! Who listens where, read again and again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::ListeningPorts;
use super::sockets::listening_sockets;
use crate::ProcRoot;
use tlsprof_common::Pid;

/// A process: its id, and a number that distinguishes processes that reuse a pid.
pub type Life = (Pid, u64);

/// Listening sockets of a network namespace: inode and port.
type Sockets = HashMap<u64, u16>;

/// Remembers what it read. To find who has a socket open, all open files of a process are
/// looked through, and 500 workers of an nginx have a channel to each other: a second.
/// So a process is looked through when it is new, or when its network namespace has a
/// listening socket that it had not before.
///
/// What a process does to its files without either is not seen until it is
/// [forgotten](Self::forget): closing a socket that others still listen on, or taking over
/// from another process one that was there before.
#[derive(Debug, Default)]
pub struct PortReader {
    namespaces: HashMap<PathBuf, Sockets>,
    held: HashMap<Life, Vec<u64>>,
}

impl PortReader {
    /// Reads the sockets of the given processes, each in its own network
    /// namespace. A process that is gone, or may not be read, has none.
    pub fn read(
        &mut self,
        proc: &ProcRoot,
        processes: impl IntoIterator<Item = Life>,
    ) -> ListeningPorts {
        let before = std::mem::take(self);
        let mut holders: HashMap<(PathBuf, u64), Vec<(Pid, u16)>> = HashMap::new();
        for life in processes {
            let Some(namespace) = proc.network_namespace(life.0) else {
                continue;
            };
            let Some(ports) = self.sockets_of(proc, &namespace, life.0) else {
                continue;
            };
            let held = match before.still_holds(life, &namespace, ports) {
                Some(held) => held,
                None => proc.sockets(life.0).unwrap_or_default(),
            };
            let listening = held.into_iter().filter(|socket| ports.contains_key(socket));
            let held: Vec<u64> = listening.collect();
            for socket in &held {
                if let Some(&port) = ports.get(socket) {
                    let key = (namespace.clone(), *socket);
                    holders.entry(key).or_default().push((life.0, port));
                }
            }
            self.held.insert(life, held);
        }
        ListeningPorts::of_holders(holders.into_values())
    }

    /// Looks through all processes the next time.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// Those of a namespace, read through the first of its processes that still lives.
    fn sockets_of(&mut self, proc: &ProcRoot, namespace: &Path, pid: Pid) -> Option<&Sockets> {
        if !self.namespaces.contains_key(namespace) {
            let sockets = listening_sockets(proc, pid)?;
            self.namespaces.insert(namespace.to_owned(), sockets);
        }
        self.namespaces.get(namespace)
    }

    /// The listening sockets that a process had open, if none has come since.
    fn still_holds(&self, life: Life, namespace: &Path, now: &Sockets) -> Option<Vec<u64>> {
        let before = self.namespaces.get(namespace)?;
        let nothing_new = now.keys().all(|socket| before.contains_key(socket));
        self.held.get(&life).filter(|_| nothing_new).cloned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop")]

    use std::collections::BTreeSet;
    use std::fs;

    use super::super::tests::add_process;
    use super::*;

    const LIVES: [Life; 2] = [(10, 1), (11, 1)];

    /// What the processes 10 and 11 listen on.
    fn both(reader: &mut PortReader, tree: &Path, lives: [Life; 2]) -> [BTreeSet<u16>; 2] {
        let ports = reader.read(&ProcRoot::new(tree), lives);
        [ports.of([10]), ports.of([11])]
    }

    #[test]
    fn a_process_is_looked_through_once() {
        let tree = tempfile::tempdir().unwrap();
        add_process(tree.path(), 10, 1, &[70002]);
        add_process(tree.path(), 11, 1, &[70001]);
        let mut reader = PortReader::default();
        let expected = [BTreeSet::from([443]), BTreeSet::from([8080])];
        assert_eq!(both(&mut reader, tree.path(), LIVES), expected);
        fs::remove_dir_all(tree.path().join("10/fd")).unwrap();
        assert_eq!(both(&mut reader, tree.path(), LIVES), expected);
        reader.forget();
        let [gone, _] = both(&mut reader, tree.path(), LIVES);
        assert!(gone.is_empty());
    }

    #[test]
    fn another_process_of_the_same_id_is_looked_through() {
        let tree = tempfile::tempdir().unwrap();
        add_process(tree.path(), 10, 1, &[70002]);
        add_process(tree.path(), 11, 1, &[]);
        let mut reader = PortReader::default();
        both(&mut reader, tree.path(), LIVES);
        fs::remove_dir_all(tree.path().join("10/fd")).unwrap();
        let [first, _] = both(&mut reader, tree.path(), [(10, 2), (11, 1)]);
        assert!(first.is_empty());
    }

    #[test]
    fn a_new_socket_may_be_of_any_process() {
        let tree = tempfile::tempdir().unwrap();
        add_process(tree.path(), 10, 1, &[70002]);
        add_process(tree.path(), 11, 1, &[70001]);
        let table = tree.path().join("10/net/tcp");
        let whole = fs::read_to_string(&table).unwrap();
        let without: Vec<&str> = whole
            .lines()
            .filter(|line| !line.contains("70001"))
            .collect();
        fs::write(&table, without.join("\n")).unwrap();
        let mut reader = PortReader::default();
        let only = BTreeSet::from([443]);
        assert_eq!(
            both(&mut reader, tree.path(), LIVES),
            [only.clone(), BTreeSet::new()]
        );
        fs::write(&table, whole).unwrap();
        assert_eq!(
            both(&mut reader, tree.path(), LIVES),
            [only, BTreeSet::from([8080])]
        );
    }

    #[test]
    fn a_closed_socket_is_nobodys() {
        let tree = tempfile::tempdir().unwrap();
        add_process(tree.path(), 10, 1, &[70002]);
        add_process(tree.path(), 11, 1, &[]);
        let mut reader = PortReader::default();
        both(&mut reader, tree.path(), LIVES);
        fs::write(tree.path().join("10/net/tcp"), "").unwrap();
        assert_eq!(
            both(&mut reader, tree.path(), LIVES),
            [BTreeSet::new(), BTreeSet::new()]
        );
    }
}
