#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed test should stop"
)]

mod code;
mod cpu;
mod mappings;
mod port;
mod properties;
mod select;
mod unselected;
mod workers;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::*;
use crate::ports::ListeningPorts;
use crate::process::Stat;
use crate::selection::Selection;
use tlsprof_common::{Device, LifetimeCpu};

const LIBSSL: u64 = 100;
const OTHER: u64 = 200;

/// Processes of which a test says everything, shared with the table.
#[derive(Clone, Debug, Default)]
struct Fake(Rc<RefCell<Processes>>);

type Processes = BTreeMap<Pid, (Process, Vec<Mapping>)>;

impl Fake {
    fn run(&self, pid: Pid, parent: Pid, start_time: u64, path: &str, images: &[u64]) {
        let executable = PathBuf::from(path);
        let service = service_name(&Cgroup::Other, &executable, "");
        let (name, cgroup, cpu) = (String::new(), Cgroup::Other, CpuTime::default());
        let process = Process {
            pid,
            parent,
            start_time,
            name,
            executable,
            cgroup,
            service,
            cpu,
        };
        let images = images.iter().map(|&inode| mapping(inode)).collect();
        self.0.borrow_mut().insert(pid, (process, images));
    }

    fn end(&self, pid: Pid) {
        self.0.borrow_mut().remove(&pid);
    }

    fn use_cpu(&self, pid: Pid, user: u64, system: u64) {
        self.0.borrow_mut().get_mut(&pid).unwrap().0.cpu = cpu(user, system);
    }
}

impl ProcessSource for Fake {
    fn pids(&self) -> Result<Vec<Pid>, Error> {
        Ok(self.0.borrow().keys().copied().collect())
    }

    fn stat(&self, pid: Pid) -> Result<Option<Stat>, Error> {
        Ok(self.process(pid)?.map(|process| Stat {
            name: process.name,
            state: 'S',
            parent: process.parent,
            kernel_thread: false,
            cpu: process.cpu,
            threads: 1,
            start_time: process.start_time,
        }))
    }

    fn process(&self, pid: Pid) -> Result<Option<Process>, Error> {
        Ok(self
            .0
            .borrow()
            .get(&pid)
            .map(|(process, _)| process.clone()))
    }

    fn images(&self, pid: Pid) -> Result<Option<Vec<Mapping>>, Error> {
        Ok(self.0.borrow().get(&pid).map(|(_, images)| images.clone()))
    }
}

fn mapping(inode: u64) -> Mapping {
    Mapping {
        start: inode << 12,
        end: (inode + 1) << 12,
        file_offset: 0,
        device: Device { major: 8, minor: 1 },
        inode,
        path: format!("/lib/{inode}.so").into(),
        deleted: false,
    }
}

fn cpu(user: u64, system: u64) -> CpuTime {
    CpuTime {
        user: Duration::from_millis(user),
        system: Duration::from_millis(system),
    }
}

fn fork(parent: Pid, child: Pid) -> ProcessEvent {
    ProcessEvent::Fork {
        parent,
        child,
        comm: "comm".into(),
    }
}

fn exec(process: Pid, path: &str) -> ProcessEvent {
    exec_after(process, path, 0)
}

fn exec_after(process: Pid, path: &str, milliseconds: u64) -> ProcessEvent {
    ProcessEvent::Exec {
        process,
        path: path.into(),
        comm: "comm".into(),
        cpu: LifetimeCpu {
            total: Duration::from_millis(milliseconds),
            ..LifetimeCpu::default()
        },
    }
}

fn exit(process: Pid, milliseconds: u64) -> ProcessEvent {
    ProcessEvent::Exit {
        process,
        cpu: LifetimeCpu {
            total: Duration::from_millis(milliseconds),
            ..LifetimeCpu::default()
        },
    }
}

/// Changes in short: `+INODE@PID` or `-INODE`.
fn changes(table: &mut ProcessTable<Fake>) -> Vec<String> {
    let short = |change| match change {
        ImageChange::Lost(image) => format!("-{}", image.inode),
        ImageChange::Gained {
            image,
            process,
            mapping,
        } => {
            assert_eq!(mapping.image(), image);
            format!("+{}@{process}", image.inode)
        }
    };
    table.take_changes().into_iter().map(short).collect()
}

fn service(table: &ProcessTable<Fake>, pid: Pid) -> Option<&str> {
    table.service_of(pid).map(ServiceName::as_str)
}

fn users(table: &ProcessTable<Fake>, inode: u64) -> Vec<Pid> {
    let images = BTreeSet::from([mapping(inode).image()]);
    table.users_of(&images).collect()
}

/// init, and an nginx master with one worker, scanned.
fn nginx() -> (Fake, ProcessTable<Fake>) {
    let fake = Fake::default();
    fake.run(1, 0, 1, "/sbin/init", &[OTHER]);
    fake.run(10, 1, 50, "/usr/sbin/nginx", &[LIBSSL, OTHER]);
    fake.run(11, 10, 60, "/usr/sbin/nginx", &[LIBSSL, OTHER]);
    let mut table = ProcessTable::new(fake.clone());
    table.scan().unwrap();
    (fake, table)
}

#[test]
fn a_scan_finds_services_and_their_images() {
    let (_fake, mut table) = nginx();
    let services = table.services();
    let names: Vec<_> = services
        .iter()
        .map(|s| (s.name.as_str(), s.processes.clone()))
        .collect();
    assert_eq!(names, [("init", vec![1]), ("nginx", vec![10, 11])]);
    assert_eq!(services[1].executable, Path::new("/usr/sbin/nginx"));
    let images: Vec<_> = services[1]
        .images
        .iter()
        .map(|(pid, m)| (*pid, m.inode))
        .collect();
    assert_eq!(images, [(10, LIBSSL), (10, OTHER)]);
    assert_eq!(changes(&mut table), ["+100@10", "+200@1"]);
    assert!(changes(&mut table).is_empty());
    table.scan().unwrap();
    assert!(
        changes(&mut table).is_empty(),
        "a second scan finds nothing new"
    );
}

#[test]
fn a_forked_process_is_known_at_once_even_if_gone() {
    let (_fake, mut table) = nginx();
    changes(&mut table);
    table.apply(&fork(10, 12));
    assert_eq!(service(&table, 12), Some("nginx"));
    assert_eq!(
        table.executables_up_from(12).next(),
        Some(Path::new("/usr/sbin/nginx"))
    );
    assert_eq!(users(&table, LIBSSL), [10, 11, 12]);
    assert!(changes(&mut table).is_empty());
    assert!(Arc::ptr_eq(
        &table.entries[&10].images,
        &table.entries[&12].images
    ));
}

#[test]
fn executables_up_from_a_process_end_with_the_first_one() {
    let (_fake, table) = nginx();
    let up: Vec<_> = table.executables_up_from(11).collect();
    let nginx = Path::new("/usr/sbin/nginx");
    assert_eq!(up, [nginx, nginx, Path::new("/sbin/init")]);
    assert_eq!(table.executables_up_from(99).count(), 0);
}

#[test]
fn a_fork_that_the_scan_knew_changes_nothing() {
    let (fake, mut table) = nginx();
    fake.run(12, 10, 70, "/usr/bin/other", &[]);
    table.scan().unwrap();
    table.apply(&fork(10, 12));
    assert_eq!(service(&table, 12), Some("other"));
}

#[test]
fn a_child_of_an_unknown_parent_is_read() {
    let (fake, mut table) = nginx();
    fake.run(12, 77, 70, "/usr/bin/other", &[]);
    table.apply(&fork(77, 12));
    table.apply(&fork(77, 13));
    assert_eq!(
        (service(&table, 12), service(&table, 13)),
        (Some("other"), None)
    );
}

#[test]
fn an_exec_is_read_again_and_changes_images() {
    let (fake, mut table) = nginx();
    changes(&mut table);
    table.apply(&fork(1, 12));
    fake.run(12, 1, 70, "/usr/bin/node", &[300, OTHER]);
    table.apply(&exec(12, "node"));
    assert_eq!(service(&table, 12), Some("node"));
    assert_eq!(changes(&mut table), ["+300@12"]);
}

#[test]
fn an_exec_of_a_process_that_is_gone_is_named_by_its_path_or_unit() {
    let (fake, mut table) = nginx();
    table.apply(&fork(10, 12));
    table.apply(&exec(12, "/usr/bin/curl"));
    table.apply(&exec(13, "./wget"));
    assert_eq!(
        (service(&table, 12), service(&table, 13)),
        (Some("curl"), Some("wget"))
    );

    fake.0.borrow_mut().get_mut(&10).unwrap().0.cgroup = Cgroup::Unit("web".into());
    table.scan().unwrap();
    table.apply(&fork(10, 14));
    table.apply(&exec(14, "/usr/bin/curl"));
    assert_eq!(service(&table, 14), Some("web"));
}

#[test]
fn a_process_whose_first_thread_has_ended_keeps_its_name_and_images() {
    let (fake, mut table) = nginx();
    changes(&mut table);
    fake.run(11, 10, 60, "", &[]);
    table.scan().unwrap();
    assert_eq!(service(&table, 11), Some("nginx"));
    assert_eq!(users(&table, LIBSSL), [10, 11]);

    table.apply(&fork(1, 12));
    fake.run(12, 1, 70, "", &[]);
    fake.run(13, 1, 71, "", &[]);
    table.apply(&exec(12, "/usr/bin/curl"));
    table.apply(&exec(13, "./a-name-of-more-than-15-bytes"));
    let named = (service(&table, 12), service(&table, 13));
    assert_eq!(named, (Some("curl"), Some("a-name-of-more-than-15-bytes")));
    // Of one that was there before, only the name is left.
    fake.run(14, 1, 72, "", &[]);
    table.scan().unwrap();
    assert_eq!(service(&table, 14), Some("unknown"));
}

#[test]
fn the_last_user_of_an_image_releases_it() {
    let (fake, mut table) = nginx();
    changes(&mut table);
    fake.end(11);
    table.apply(&exit(11, 1));
    assert!(changes(&mut table).is_empty());
    fake.end(10);
    table.apply(&exit(10, 1));
    assert_eq!(changes(&mut table), ["-100"]);
}

#[test]
fn a_library_loaded_at_run_time_is_of_one_process_only() {
    let (_fake, mut table) = nginx();
    table.apply(&fork(10, 12));
    changes(&mut table);
    table.mapped(12, mapping(300));
    table.mapped(12, mapping(300));
    assert_eq!(changes(&mut table), ["+300@12"]);
    assert_eq!(users(&table, 300), [12]);
    table.mapped(12, mapping(301));
    table.apply(&exit(12, 0));
    assert_eq!(changes(&mut table), ["-300"], "301 came and went unseen");
    table.mapped(12, mapping(302));
    table.mapped(99, mapping(302));
    assert!(changes(&mut table).is_empty(), "dead or unknown");
}

#[test]
fn an_image_that_could_not_be_opened_is_reported_again() {
    let (_fake, mut table) = nginx();
    changes(&mut table);
    table.report_again(mapping(LIBSSL).image());
    table.report_again(mapping(999).image());
    assert_eq!(changes(&mut table), ["+100@10"]);
}

#[test]
fn the_lately_dead_keep_their_service_within_the_bound() {
    let (_fake, mut table) = nginx();
    table.apply(&fork(10, 12));
    table.apply(&exit(12, 5));
    assert_eq!(service(&table, 12), Some("nginx"));
    assert!(!table.live().any(|pid| pid == 12));
    for pid in 1000..1000 + u32::try_from(MAX_DEAD).unwrap() {
        table.apply(&fork(10, pid));
        table.apply(&exit(pid, 0));
    }
    assert_eq!(service(&table, 12), None, "the oldest goes first");
    assert_eq!(service(&table, 1000), Some("nginx"));
    assert_eq!(table.entries.len(), 3 + MAX_DEAD);
}

#[test]
fn the_table_is_bounded() {
    let (_fake, mut table) = nginx();
    table.apply(&fork(10, 999));
    table.apply(&exit(999, 0));
    for pid in 1000..1000 + u32::try_from(MAX_PROCESSES).unwrap() {
        table.apply(&fork(10, pid));
    }
    assert_eq!(table.entries.len(), MAX_PROCESSES);
    assert_eq!(service(&table, 999), None, "the dead make room");
    assert_eq!(table.ignored(), 3);
}

#[test]
fn a_pid_that_is_used_again_is_another_process() {
    let (fake, mut table) = nginx();
    // A fork with the pid of a process whose exit was lost.
    fake.run(11, 1, 900, "/sbin/init", &[OTHER]);
    table.apply(&fork(1, 11));
    assert_eq!(service(&table, 11), Some("init"));
    // Both events were lost, and a scan finds out.
    fake.run(10, 1, 901, "/usr/bin/node", &[300]);
    table.scan().unwrap();
    assert_eq!(service(&table, 10), Some("node"));
    // The old owner's place in the queue of the dead does not end the new one.
    table.apply(&exit(10, 0));
    table.apply(&fork(1, 10));
    for pid in 1000..1000 + u32::try_from(MAX_DEAD).unwrap() {
        table.apply(&fork(1, pid));
        table.apply(&exit(pid, 0));
    }
    assert_eq!(service(&table, 10), Some("init"));
}

#[test]
fn a_process_on_its_way_out_does_not_come_back() {
    let (_fake, mut table) = nginx();
    table.apply(&exit(11, 5));
    table.scan().unwrap();
    assert!(!table.live().any(|pid| pid == 11));
}
