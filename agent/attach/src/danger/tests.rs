#![allow(clippy::unwrap_used, reason = "a failed test should stop")]

use std::cell::RefCell;
use std::path::PathBuf;

use super::*;
use tlsprof_common::Device;
use tlsprof_discover::Error;
use tlsprof_discover::ports::ListeningPorts;
use tlsprof_discover::process::{CpuTime, Process, Stat};
use tlsprof_discover::selection::Selection;
use tlsprof_discover::service::{Cgroup, service_name};

const LIBSSL: u64 = 1;
const LIBCRYPTO: u64 = 2;
const LIBC: u64 = 3;
const OTHER_LIBSSL: u64 = 4;
const COROUTINES: u64 = 90;

const CHOSEN: Pid = 10;
const BYSTANDER: Pid = 20;

const NEW: &str = "6.18.0";
const DEADLY: &str = "6.12.0";

/// A host of which a test says everything: which images each process maps, and
/// who is under seccomp. Counts how often it is asked about an image.
#[derive(Default)]
struct Host {
    processes: BTreeMap<Pid, Vec<u64>>,
    filtered: BTreeSet<Pid>,
    closed: BTreeSet<u64>,
    looks: RefCell<BTreeMap<u64, usize>>,
}

impl Host {
    fn with(processes: &[(Pid, &[u64])]) -> Self {
        let processes = processes.iter();
        Self {
            processes: processes
                .map(|(pid, images)| (*pid, images.to_vec()))
                .collect(),
            ..Self::default()
        }
    }

    /// The table of this host, where only `CHOSEN` is selected.
    fn table(&self) -> ProcessTable<Processes> {
        let mut table = ProcessTable::new(Processes(self.processes.clone()));
        table.scan().unwrap();
        table
            .select(&Selection::Pid(CHOSEN), &ListeningPorts::default())
            .unwrap();
        table
    }

    /// Who endangers which of the images `LIBSSL` and `LIBCRYPTO`.
    fn dangers(&self, kernel: &str) -> Vec<(u64, Pid, Harm)> {
        self.dangers_again(&mut Dangers::new(kernel))
    }

    fn dangers_again(&self, dangers: &mut Dangers) -> Vec<(u64, Pid, Harm)> {
        let probed = BTreeSet::from([image(LIBSSL), image(LIBCRYPTO)]);
        let table = self.table();
        let found = dangers.among(table.live(), &table, &probed, self);
        let short = |(image, danger): (ImageId, Danger)| (image.inode, danger.process, danger.harm);
        found.into_iter().map(short).collect()
    }
}

impl Inspect for Host {
    fn switches_stacks(&self, process: Pid, mapping: &Mapping) -> Option<bool> {
        let images = self.processes.get(&process).unwrap();
        assert!(images.contains(&mapping.inode));
        *self.looks.borrow_mut().entry(mapping.inode).or_default() += 1;
        (!self.closed.contains(&mapping.inode)).then_some(mapping.inode == COROUTINES)
    }

    fn is_under_seccomp(&self, process: Pid) -> bool {
        self.filtered.contains(&process)
    }

    fn name(&self, process: Pid) -> String {
        format!("name of {process}")
    }
}

struct Processes(BTreeMap<Pid, Vec<u64>>);

impl ProcessSource for Processes {
    fn pids(&self) -> Result<Vec<Pid>, Error> {
        Ok(self.0.keys().copied().collect())
    }

    fn stat(&self, _pid: Pid) -> Result<Option<Stat>, Error> {
        Ok(None)
    }

    fn process(&self, pid: Pid) -> Result<Option<Process>, Error> {
        let executable = PathBuf::from(format!("/bin/{pid}"));
        Ok(self.0.contains_key(&pid).then(|| Process {
            pid,
            parent: 1,
            start_time: u64::from(pid),
            name: String::new(),
            service: service_name(&Cgroup::Other, &executable, ""),
            executable,
            cgroup: Cgroup::Other,
            cpu: CpuTime::default(),
        }))
    }

    fn images(&self, pid: Pid) -> Result<Option<Vec<Mapping>>, Error> {
        let images = self.0.get(&pid);
        Ok(images.map(|images| images.iter().copied().map(mapping).collect()))
    }
}

fn image(inode: u64) -> ImageId {
    mapping(inode).image()
}

fn mapping(inode: u64) -> Mapping {
    Mapping {
        start: 0x1000,
        end: 0x2000,
        file_offset: 0,
        device: Device { major: 8, minor: 1 },
        inode,
        path: PathBuf::from(format!("/lib/{inode}")),
        deleted: false,
    }
}

#[test]
fn an_unselected_process_with_coroutines_endangers_what_it_shares() {
    let host = Host::with(&[
        (CHOSEN, &[LIBSSL, LIBCRYPTO, LIBC]),
        (BYSTANDER, &[LIBC, LIBCRYPTO, COROUTINES]),
    ]);
    assert_eq!(
        host.dangers(NEW),
        [(LIBCRYPTO, BYSTANDER, Harm::SwitchesStacks)]
    );
}

/// The devices of two overlays and of the disk beneath.
#[test]
fn a_process_endangers_a_library_of_a_layer_that_containers_share() {
    let on = |(major, minor)| Mapping {
        device: Device { major, minor },
        ..mapping(LIBSSL)
    };
    let probed_on = [(0, 40), (0, 41), (8, 1), (8, 2)];
    let endangered = |bystanders: (u32, u32)| -> Vec<bool> {
        let probed: BTreeSet<ImageId> = probed_on.iter().map(|one| on(*one).image()).collect();
        let host = Host::with(&[(CHOSEN, &[LIBC]), (BYSTANDER, &[COROUTINES])]);
        let mut table = host.table();
        table.mapped(
            BYSTANDER,
            Mapping {
                start: 0x5000,
                end: 0x6000,
                ..on(bystanders)
            },
        );
        let found = Dangers::new(NEW).among(table.live(), &table, &probed, &host);
        let is_found = |one: &(u32, u32)| found.contains_key(&on(*one).image());
        probed_on.iter().map(is_found).collect()
    };
    assert_eq!(endangered((0, 40)), [true; 4]);
    assert_eq!(endangered((8, 1)), [true, true, true, false]);
}

#[test]
fn coroutines_without_the_library_are_no_danger_and_cost_nothing() {
    let host = Host::with(&[
        (CHOSEN, &[LIBSSL, LIBCRYPTO]),
        (BYSTANDER, &[LIBC, OTHER_LIBSSL, COROUTINES]),
    ]);
    assert_eq!(host.dangers(NEW), []);
    let looked_into: Vec<u64> = host.looks.borrow().keys().copied().collect();
    assert_eq!(looked_into, [LIBSSL, LIBCRYPTO]);
}

#[test]
fn a_selected_process_with_coroutines_is_a_danger_too() {
    let host = Host::with(&[(CHOSEN, &[LIBSSL, COROUTINES])]);
    assert_eq!(host.dangers(NEW), [(LIBSSL, CHOSEN, Harm::SwitchesStacks)]);
}

#[test]
fn an_image_is_looked_into_once_until_it_is_forgotten() {
    let mut processes: Vec<(Pid, &[u64])> = vec![(CHOSEN, &[LIBSSL, LIBC])];
    processes.extend((100..400).map(|pid| (pid, &[LIBSSL, LIBC] as &[u64])));
    let host = Host::with(&processes);
    let mut dangers = Dangers::new(NEW);
    for _ in 0..3 {
        assert_eq!(host.dangers_again(&mut dangers), []);
    }
    assert_eq!(
        *host.looks.borrow(),
        BTreeMap::from([(LIBSSL, 1), (LIBC, 1)])
    );
    dangers.forget(image(LIBC));
    assert_eq!(host.dangers_again(&mut dangers), []);
    assert_eq!(
        *host.looks.borrow(),
        BTreeMap::from([(LIBSSL, 1), (LIBC, 2)])
    );
}

#[test]
fn an_image_that_cannot_be_opened_is_tried_again() {
    let mut host = Host::with(&[(CHOSEN, &[LIBSSL]), (BYSTANDER, &[LIBSSL, COROUTINES])]);
    host.closed.insert(COROUTINES);
    let mut dangers = Dangers::new(NEW);
    assert_eq!(host.dangers_again(&mut dangers), []);
    host.closed.clear();
    let found = host.dangers_again(&mut dangers);
    assert_eq!(found, [(LIBSSL, BYSTANDER, Harm::SwitchesStacks)]);
}

#[test]
fn seccomp_is_a_danger_where_the_kernel_makes_it_one() {
    let mut host = Host::with(&[(CHOSEN, &[LIBSSL]), (BYSTANDER, &[LIBCRYPTO])]);
    host.filtered.insert(BYSTANDER);
    assert_eq!(host.dangers(NEW), []);
    assert_eq!(
        host.dangers(DEADLY),
        [(LIBCRYPTO, BYSTANDER, Harm::Seccomp)]
    );
}

#[test]
fn the_reason_names_the_process() {
    let danger = |harm| Danger {
        process: 20,
        name: "qemu".to_owned(),
        harm,
    };
    let text = danger(Harm::SwitchesStacks).to_string();
    assert!(
        text.starts_with("process 20 (qemu), which uses it, may switch stacks"),
        "{text}"
    );
    let text = danger(Harm::Seccomp).to_string();
    assert!(
        text.starts_with("process 20 (qemu), which uses it, is under seccomp"),
        "{text}"
    );
}

#[test]
fn seccomp_kills_on_three_releases_only() {
    for (release, kills) in [
        ("6.10.14", false),
        ("6.11.0-1-amd64", true),
        ("6.12.90", true),
        ("6.13", true),
        ("6.14.0", false),
        ("5.12.0", false),
        ("7.12.0", false),
        ("nonsense", false),
        ("", false),
    ] {
        assert_eq!(seccomp_kills("x86_64", release), kills, "{release}");
        assert!(!seccomp_kills("aarch64", release), "{release}");
    }
}
