#![allow(clippy::unwrap_used, reason = "a failed test should stop")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::id;

use proptest::prelude::*;

use super::*;

const HOSTILE_NAME: &[u8] = include_bytes!("../../../tests/fixtures/proc/stat_hostile_name");
const KERNEL_THREAD: &[u8] = include_bytes!("../../../tests/fixtures/proc/stat_kernel_thread");

/// A /proc with one process 4711; its files can be taken away.
fn proc_tree() -> (tempfile::TempDir, ProcRoot) {
    let tree = tempfile::tempdir().unwrap();
    let process = tree.path().join("4711");
    fs::create_dir(&process).unwrap();
    fs::write(process.join("stat"), HOSTILE_NAME).unwrap();
    fs::write(process.join("cgroup"), "0::/system.slice/web.service\n").unwrap();
    symlink("/usr/sbin/web server (deleted)", process.join("exe")).unwrap();
    let proc = ProcRoot::new(tree.path());
    (tree, proc)
}

#[test]
fn a_name_cannot_forge_other_fields() {
    let stat = parse_stat(HOSTILE_NAME, 100).unwrap();
    assert_eq!(
        stat,
        Stat {
            name: "evil) R 1 (\n name".into(),
            state: 'S',
            parent: 812,
            kernel_thread: false,
            cpu: CpuTime {
                user: Duration::from_millis(2500),
                system: Duration::from_millis(750)
            },
            threads: 4,
            start_time: 123_456,
        }
    );
}

#[test]
fn kernel_threads_are_told_by_their_flag() {
    assert!(parse_stat(KERNEL_THREAD, 100).unwrap().kernel_thread);
}

#[test]
fn ticks_become_time() {
    assert_eq!(ticks(250, 100), Duration::from_millis(2500));
    assert_eq!(ticks(1, 1024), Duration::from_nanos(976_562));
    assert_eq!(ticks(1, 0), Duration::from_secs(1));
    assert_eq!(ticks(u64::MAX, 1), Duration::from_secs(u64::MAX));
}

#[test]
fn reads_a_process() {
    let (_tree, proc) = proc_tree();
    let process = proc.process(4711).unwrap().unwrap();
    assert_eq!(process.executable, Path::new("/usr/sbin/web server"));
    assert_eq!(process.service.as_str(), "web");
    assert_eq!((process.parent, process.start_time), (812, 123_456));
}

#[test]
fn cpu_time_of_a_process_with_one_thread_is_exact() {
    let (tree, proc) = proc_tree();
    let stat = "7 (web) S 1 7 7 0 -1 0 0 0 0 0 120 30 0 0 20 0 1 0 99\n";
    let total = |threads: &str, run_time: &str| {
        let stat = stat.replace(" 20 0 1 0 ", threads);
        fs::write(tree.path().join("4711/stat"), stat).unwrap();
        fs::write(tree.path().join("4711/schedstat"), run_time).unwrap();
        let cpu = proc.stat(4711).unwrap().unwrap().cpu;
        (cpu.total(), cpu.system)
    };
    let (ticks, system) = (Duration::from_millis(1500), Duration::from_millis(300));
    let exact = Duration::from_nanos(1_512_345_678);
    assert_eq!(total(" 20 0 1 0 ", "1512345678 5 6\n"), (exact, system));
    assert_eq!(total(" 20 0 1 0 ", "1490000000 5 6\n"), (ticks, system));
    assert_eq!(total(" 20 0 4 0 ", "1512345678 5 6\n"), (ticks, system));
}

#[test]
fn a_process_that_vanishes_is_no_error() {
    for file in ["stat", "exe", "cgroup"] {
        let (tree, proc) = proc_tree();
        let one_thread = String::from_utf8_lossy(HOSTILE_NAME).replace(" 20 0 4 0 ", " 20 0 1 0 ");
        fs::write(tree.path().join("4711/stat"), one_thread).unwrap();
        fs::remove_file(tree.path().join("4711").join(file)).unwrap();
        assert_eq!(proc.process(4711).unwrap(), None, "without {file}");
    }
    let (_tree, proc) = proc_tree();
    assert_eq!(proc.process(4712).unwrap(), None);
}

#[test]
fn a_process_whose_first_thread_has_ended_goes_by_its_name() {
    let (tree, proc) = proc_tree();
    fs::remove_file(tree.path().join("4711/exe")).unwrap();
    fs::write(tree.path().join("4711/cgroup"), "0::/\n").unwrap();
    let process = proc.process(4711).unwrap().unwrap();
    assert_eq!(process.executable, Path::new(""));
    assert_eq!(process.service.as_str(), "evil) R 1 (\u{fffd} name");
}

#[test]
fn zombies_and_kernel_threads_are_no_processes() {
    let (tree, proc) = proc_tree();
    fs::write(tree.path().join("4711/stat"), KERNEL_THREAD).unwrap();
    assert_eq!(proc.process(4711).unwrap(), None);
    fs::write(
        tree.path().join("4711/stat"),
        "7 (gone) Z 1 7 7 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 99\n",
    )
    .unwrap();
    assert_eq!(proc.process(4711).unwrap(), None);
}

#[test]
fn what_is_no_stat_is_an_error_with_its_text() {
    let (tree, proc) = proc_tree();
    fs::write(tree.path().join("4711/stat"), "nonsense").unwrap();
    let error = proc.process(4711).unwrap_err().to_string();
    assert!(error.ends_with("4711/stat: \"nonsense\""), "{error}");
}

#[test]
fn lists_processes_only() {
    let (tree, proc) = proc_tree();
    fs::create_dir(tree.path().join("sys")).unwrap();
    fs::create_dir(tree.path().join("99")).unwrap();
    assert_eq!(proc.pids().unwrap(), [99, 4711]);
    assert_eq!(proc.processes().unwrap().len(), 1);
}

#[test]
fn reads_this_very_process() {
    let proc = ProcRoot::default();
    let process = proc.process(id()).unwrap().unwrap();
    assert_eq!(process.executable, std::env::current_exe().unwrap());
    assert!(
        proc.processes()
            .unwrap()
            .iter()
            .any(|other| other.pid == id())
    );
    let images = proc.images(id()).unwrap().unwrap();
    assert!(
        images
            .iter()
            .any(|mapping| mapping.path == process.executable)
    );
}

proptest! {
    #[test]
    fn any_text_is_survived(text: Vec<u8>, per_second: u64) {
        parse_stat(&text, per_second);
    }

    #[test]
    fn any_name_is_survived(name in "[^\0]{0,15}") {
        let text = format!("7 ({name}) S 3 7 7 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 99");
        let stat = parse_stat(text.as_bytes(), 100);
        prop_assert_eq!(stat.map(|stat| (stat.name, stat.parent)), Some((name, 3)));
    }
}
