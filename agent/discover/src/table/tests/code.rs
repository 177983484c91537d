//! Which addresses belong to TLS libraries, as processes come and go.

use super::*;

const TLS_ADDRESS: u64 = 0x5000_1000;
const OTHER_ADDRESS: u64 = 0x6000_1000;

fn image(inode: u64, start: u64, path: &str) -> Mapping {
    Mapping {
        start,
        end: start + 0x2000,
        path: path.into(),
        ..mapping(inode)
    }
}

/// A server with a TLS library and another one.
fn server() -> (Fake, ProcessTable<Fake>) {
    let fake = Fake::default();
    fake.run(10, 1, 5, "/usr/sbin/server", &[]);
    let images = vec![
        image(1, TLS_ADDRESS - 0x1000, "/lib/libcrypto.so.3"),
        image(2, OTHER_ADDRESS - 0x1000, "/lib/libc.so.6"),
    ];
    fake.0.borrow_mut().get_mut(&10).unwrap().1 = images;
    let mut table = ProcessTable::new(fake.clone());
    table.scan().unwrap();
    (fake, table)
}

#[test]
fn an_address_is_looked_up_in_its_own_process() {
    let (_fake, table) = server();
    assert!(table.is_in_tls_library(10, TLS_ADDRESS));
    assert!(!table.is_in_tls_library(10, TLS_ADDRESS + 0x1000));
    assert!(!table.is_in_tls_library(10, OTHER_ADDRESS));
    assert!(!table.is_in_tls_library(11, TLS_ADDRESS));
}

#[test]
fn a_child_that_came_and_went_has_its_parents_code() {
    let (_fake, mut table) = server();
    table.apply(&fork(10, 11));
    table.apply(&exit(11, 5));
    table.apply(&exit(10, 5));
    for pid in [10, 11] {
        assert!(table.is_in_tls_library(pid, TLS_ADDRESS));
        assert!(!table.is_in_tls_library(pid, OTHER_ADDRESS));
    }
}

#[test]
fn a_child_that_has_become_another_program_has_not() {
    let (_fake, mut table) = server();
    table.apply(&fork(10, 11));
    table.apply(&exec(11, "/usr/bin/other"));
    assert!(!table.is_in_tls_library(11, TLS_ADDRESS));
    table.apply(&exit(11, 5));
    assert!(!table.is_in_tls_library(11, TLS_ADDRESS));
}

#[test]
fn who_has_the_pid_of_a_dead_one_has_not_its_code() {
    let (fake, mut table) = server();
    table.apply(&exit(10, 5));
    fake.end(10);
    fake.run(12, 1, 6, "/usr/bin/other", &[OTHER]);
    table.scan().unwrap();
    table.apply(&fork(12, 10));
    assert!(!table.is_in_tls_library(10, TLS_ADDRESS));
}
