#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed test should stop"
)]

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::id;

use proptest::prelude::*;

use super::sockets::parse_listeners;
use super::*;

const TCP: &[u8] = include_bytes!("../../../tests/fixtures/proc/net_tcp");
const TCP6: &[u8] = include_bytes!("../../../tests/fixtures/proc/net_tcp6");

/// A process with sockets, in a network namespace. The kernel shows the table of
/// the namespace under each of its processes.
fn add_process(tree: &Path, pid: Pid, namespace: u32, sockets: &[u64]) {
    let dir = tree.join(pid.to_string());
    for part in ["fd", "net", "ns"] {
        fs::create_dir_all(dir.join(part)).unwrap();
    }
    fs::write(dir.join("net/tcp"), TCP).unwrap();
    fs::write(dir.join("net/tcp6"), TCP6).unwrap();
    symlink(format!("net:[{namespace}]"), dir.join("ns/net")).unwrap();
    symlink("/dev/null", dir.join("fd/0")).unwrap();
    for (fd, socket) in sockets.iter().enumerate() {
        symlink(
            format!("socket:[{socket}]"),
            dir.join(format!("fd/{}", fd + 3)),
        )
        .unwrap();
    }
}

fn read(tree: &Path, pids: &[Pid]) -> ListeningPorts {
    ListeningPorts::read(&ProcRoot::new(tree), pids.iter().copied())
}

#[test]
fn only_listening_sockets_count() {
    assert_eq!(
        parse_listeners(TCP).unwrap(),
        Sockets::from([(70001, 8080), (70002, 443)])
    );
    assert_eq!(
        parse_listeners(TCP6).unwrap(),
        Sockets::from([(70004, 8443)])
    );
}

#[test]
fn connections_behind_the_listeners_are_not_read() {
    let connection = TCP
        .split_inclusive(|&byte| byte == b'\n')
        .next_back()
        .unwrap();
    let text = [TCP, &connection.repeat(1000)].concat();
    let mut rest = text.as_slice();
    assert_eq!(parse_listeners(&mut rest).unwrap().len(), 2);
    assert!(rest.len() >= 1000 * connection.len());
}

#[test]
fn sockets_are_joined_with_their_processes() {
    let tree = tempfile::tempdir().unwrap();
    add_process(tree.path(), 10, 1, &[70002, 70003, 70004]);
    add_process(tree.path(), 11, 1, &[70002]);
    add_process(tree.path(), 12, 1, &[70003]);
    let ports = read(tree.path(), &[10, 11, 12, 13]);
    assert_eq!(ports.of([10]), BTreeSet::from([443, 8443]));
    assert_eq!(ports.of([11, 12]), BTreeSet::from([443]));
    assert_eq!(ports.listening_on(443).collect::<Vec<_>>(), [10, 11]);
    assert_eq!(ports.listening_on(80).count(), 0);
}

#[test]
fn a_namespace_is_read_through_a_process_that_still_lives() {
    let tree = tempfile::tempdir().unwrap();
    add_process(tree.path(), 10, 1, &[]);
    add_process(tree.path(), 11, 1, &[70001]);
    fs::remove_dir_all(tree.path().join("10/net")).unwrap();
    assert_eq!(
        read(tree.path(), &[10, 11]).of([11]),
        BTreeSet::from([8080])
    );
}

#[test]
fn the_first_process_only_keeps_sockets_for_others() {
    let tree = tempfile::tempdir().unwrap();
    add_process(tree.path(), 1, 1, &[70001, 70002]);
    add_process(tree.path(), 20, 1, &[70002]);
    let ports = read(tree.path(), &[1, 20]);
    assert_eq!(ports.of([1]), BTreeSet::from([8080]));
    assert_eq!(ports.listening_on(443).collect::<Vec<_>>(), [20]);
    assert_eq!(ports.holders(70002), Some(&BTreeSet::from([20])));
    assert_eq!(ports.holders(70003), None);
}

#[test]
fn finds_an_own_listener() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let ports = ListeningPorts::read(&ProcRoot::default(), [id()]);
    assert_eq!(ports.listening_on(port).collect::<Vec<_>>(), [id()]);
}

proptest! {
    #[test]
    fn any_text_is_survived(text: Vec<u8>) {
        parse_listeners(text.as_slice()).unwrap();
    }

    #[test]
    fn any_line_is_survived(line in " *[0-9]{1,3}: [0-9A-F:]{0,40} [0-9A-F:]{0,40} 0A( [0-9A-F:]{0,20}){0,9}") {
        parse_listeners(line.as_bytes()).unwrap();
    }

    #[test]
    fn any_link_is_survived(link in "(socket:\\[)?.{0,20}\\]?") {
        socket_inode(Path::new(&link));
    }
}
