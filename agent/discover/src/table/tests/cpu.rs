//! CPU time of services.

use super::*;

/// What a service used since that was asked for the last time.
fn taken(table: &mut ProcessTable<Fake>, service: &str) -> CpuTime {
    let mut taken = table.take_cpu(|name| name == service).into_values();
    taken.next().unwrap_or_default()
}

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
    assert_eq!(taken(&mut table, "nginx"), cpu(230, 110));

    fake.end(12);
    table.apply(&exit(12, 330));
    assert_eq!(
        taken(&mut table, "nginx"),
        cpu(30, 0),
        "no tick in system mode: all user, and nothing is taken back"
    );
    table.apply(&fork(10, 13));
    table.apply(&exit(13, 4));
    assert_eq!(
        taken(&mut table, "nginx"),
        cpu(4, 0),
        "never seen and not hit by a tick: all user"
    );
    assert_eq!(taken(&mut table, "unknown"), cpu(0, 0));
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
    assert_eq!(taken(&mut table, "init"), cpu(10, 0));
    assert_eq!(taken(&mut table, "node"), cpu(5, 5));
}

#[test]
fn an_exit_that_comes_after_the_scan_counts_only_the_rest() {
    let (fake, mut table) = nginx();
    fake.use_cpu(11, 40, 0);
    table.read_cpu(|_| true);
    fake.end(11);
    table.scan().unwrap();
    assert_eq!(taken(&mut table, "nginx"), cpu(40, 0));
    table.apply(&exit(11, 50));
    assert_eq!(taken(&mut table, "nginx"), cpu(10, 0));
}

/// Starts a process of a program of its own, which ends at once.
fn short(table: &mut ProcessTable<Fake>, pid: Pid, program: &str, milliseconds: u64) {
    table.apply(&fork(1, pid));
    table.apply(&exec(pid, program));
    table.apply(&exit(pid, milliseconds));
}

#[test]
fn children_that_end_are_counted_however_many_services_there_were() {
    const CHILDREN: Pid = 20;
    let (_fake, mut table) = nginx();
    for number in 0..10_000 {
        short(&mut table, 100 + number, &format!("/bin/{number}"), 1);
    }
    for number in 0..CHILDREN {
        short(&mut table, 20_000 + number, "/usr/sbin/server", 10);
        assert_eq!(taken(&mut table, "server"), cpu(10, 0));
    }
    let rest = table.take_cpu(|_| true);
    let rest = rest.into_values().reduce(|sum, one| sum + one);
    assert_eq!(rest, Some(cpu(10_000, 0)));
}

#[test]
fn time_of_services_that_nobody_wants_yet_is_kept() {
    let (fake, mut table) = nginx();
    fake.use_cpu(10, 20, 5);
    table.read_cpu(|_| true);
    table.apply(&exit(11, 7));
    assert_eq!(taken(&mut table, "init"), cpu(0, 0));
    fake.use_cpu(10, 30, 6);
    table.read_cpu(|_| true);
    assert_eq!(taken(&mut table, "nginx"), cpu(37, 6));
    assert_eq!(table.take_cpu(|_| true), BTreeMap::new());
}

#[test]
fn workers_that_grow_hide_no_end_of_another() {
    let (fake, mut table) = nginx();
    let mut sum = cpu(0, 0);
    for (number, used) in (20..40).zip(1..) {
        fake.use_cpu(10, 100 * used, 10 * used);
        table.read_cpu(|_| true);
        table.apply(&fork(10, number));
        table.apply(&exit(number, 5));
        sum += taken(&mut table, "nginx");
    }
    assert_eq!(sum, cpu(2000 + 100, 200));
}
