//! CPU time of services.

use super::*;

#[test]
fn cpu_time_counts_from_the_scan_or_the_fork() {
    let (fake, table) = nginx();
    fake.use_cpu(10, 1000, 1000);
    drop(table);
    let mut table = ProcessTable::new(fake.clone());
    table.scan().unwrap();
    table.apply(&fork(10, 12));
    fake.run(12, 10, 70, "/usr/sbin/nginx", &[]);
    fake.use_cpu(10, 1030, 1010);
    fake.use_cpu(12, 200, 100);
    table.read_cpu(|_| true);
    assert_eq!(table.cpu_since_start("nginx"), cpu(230, 110));

    fake.end(12);
    table.apply(&exit(12, 330));
    assert_eq!(
        table.cpu_since_start("nginx"),
        cpu(260, 110),
        "no tick in system mode: all user, and nothing is taken back"
    );
    table.apply(&fork(10, 13));
    table.apply(&exit(13, 4));
    assert_eq!(
        table.cpu_since_start("nginx"),
        cpu(264, 110),
        "never seen and not hit by a tick: all user"
    );
    assert_eq!(table.cpu_since_start("unknown"), cpu(0, 0));
}

#[test]
fn cpu_time_before_an_exec_stays_with_the_old_service() {
    let (fake, mut table) = nginx();
    table.apply(&fork(1, 12));
    fake.run(12, 1, 70, "/usr/bin/node", &[]);
    // The event comes late: the new program has run for 3 ms by then.
    fake.use_cpu(12, 13, 0);
    table.apply(&exec_after(12, "/usr/bin/node", 10));
    fake.use_cpu(12, 15, 5);
    table.read_cpu(|_| true);
    assert_eq!(table.cpu_since_start("init"), cpu(10, 0));
    assert_eq!(table.cpu_since_start("node"), cpu(5, 5));
}

#[test]
fn an_exit_that_comes_after_the_scan_counts_only_the_rest() {
    let (fake, mut table) = nginx();
    fake.use_cpu(11, 40, 0);
    table.read_cpu(|_| true);
    fake.end(11);
    table.scan().unwrap();
    assert_eq!(table.cpu_since_start("nginx"), cpu(40, 0));
    table.apply(&exit(11, 50));
    assert_eq!(table.cpu_since_start("nginx"), cpu(50, 0));
}
