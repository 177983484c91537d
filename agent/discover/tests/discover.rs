//! Discovers a really running nginx, whose libssl is replaced meanwhile.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed test should stop"
)]

use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tlsprof_discover::ProcRoot;
use tlsprof_discover::image::Mapping;
use tlsprof_discover::ports::ListeningPorts;
use tlsprof_discover::selection::Selection;
use tlsprof_discover::table::{ImageChange, ProcessTable};

const NGINX: &str = "/usr/sbin/nginx";
const WORKERS: usize = 2;

/// nginx in the foreground, with its files in a temporary folder.
struct Nginx {
    master: Child,
    port: u16,
    directory: tempfile::TempDir,
}

impl Nginx {
    /// Returns when it serves with all its workers.
    fn start(libssl: &Path) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::copy(libssl, directory.path().join("libssl.so.3")).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let configuration = format!(
            "daemon off; worker_processes {WORKERS}; pid nginx.pid; error_log stderr;\n\
             events {{}}\n\
             http {{ access_log off; server {{ listen 127.0.0.1:{port}; }} }}\n"
        );
        fs::write(directory.path().join("nginx.conf"), configuration).unwrap();
        let master = Command::new(NGINX)
            .arg("-p")
            .arg(directory.path())
            .args(["-c", "nginx.conf", "-e", "stderr"])
            .env("LD_LIBRARY_PATH", directory.path())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let nginx = Self {
            master,
            port,
            directory,
        };
        wait_until("nginx serves", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        wait_until("nginx has its workers", || nginx.workers().len() == WORKERS);
        nginx
    }

    /// Those that have loaded all their libraries: they name themselves after they have changed their user, which
    /// loads some.
    fn workers(&self) -> BTreeSet<u32> {
        let processes = ProcRoot::default().processes().unwrap();
        let children = processes
            .into_iter()
            .filter(|process| process.parent == self.master.id());
        let children = children.map(|process| process.pid);
        children.filter(|pid| is_named_worker(*pid)).collect()
    }

    /// Returns when only new workers are left.
    fn reload(&self) {
        let old = self.workers();
        self.signal(Signal::HUP);
        wait_until("the workers are new", || {
            let now = self.workers();
            now.len() == WORKERS && now.is_disjoint(&old)
        });
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.master.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.unwrap(), signal).unwrap();
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Not SIGKILL: the master is to end its workers.
        self.signal(Signal::TERM);
        self.master.wait().unwrap();
    }
}

fn is_named_worker(pid: u32) -> bool {
    // One that has ended since has no name.
    let name = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    name.starts_with("nginx: worker process")
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn libssl() -> Option<PathBuf> {
    let folders = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
    ];
    folders
        .iter()
        .map(|folder| Path::new(folder).join("libssl.so.3"))
        .find(|path| path.exists())
}

#[test]
fn a_running_nginx_and_its_replaced_library() {
    let Some(libssl) = libssl().filter(|_| Path::new(NGINX).exists()) else {
        eprintln!("skipped: needs {NGINX} and libssl.so.3");
        return;
    };
    let nginx = Nginx::start(&libssl);
    let copy = nginx.directory.path().join("libssl.so.3");
    fs::write(nginx.directory.path().join("new"), "another library").unwrap();
    fs::rename(nginx.directory.path().join("new"), &copy).unwrap();

    let proc = ProcRoot::default();
    let mut table = ProcessTable::new(proc.clone());
    table.scan().unwrap();
    let ports = ListeningPorts::read(&proc, table.live());
    table.select(&Selection::Port(nginx.port), &ports).unwrap();

    let services = table.services();
    assert_eq!(services.len(), 1, "{services:?}");
    let service = services.first().unwrap();
    assert_eq!(service.processes.len(), 1 + WORKERS, "master and workers");
    assert_eq!(service.executable, Path::new(NGINX));
    assert!(
        ports
            .of(service.processes.iter().copied())
            .contains(&nginx.port)
    );

    let (pid, mapping) = replaced_library(&mut table, &copy);
    assert!(mapping.deleted);
    match mapping.open(&proc, pid) {
        Ok(open) => assert_eq!(fs::read(open.path()).unwrap(), fs::read(&libssl).unwrap()),
        Err(error) if geteuid().is_root() => panic!("{error}"),
        Err(error) => eprintln!("not root, a replaced library cannot be opened: {error}"),
    }

    nginx.reload();
    let mut expected = nginx.workers();
    expected.insert(nginx.master.id());
    // A process that has ended stays in /proc until its parent has waited for it.
    wait_until("new workers are selected, old ones are gone", || {
        table.scan().unwrap();
        let services = table.services();
        let live = services.iter().flat_map(|service| &service.processes);
        live.copied().collect::<BTreeSet<u32>>() == expected
    });
    let changes = table.take_changes();
    assert!(changes.is_empty(), "the images are the same: {changes:?}");
}

fn replaced_library(table: &mut ProcessTable<ProcRoot>, path: &Path) -> (u32, Mapping) {
    let found = table
        .take_changes()
        .into_iter()
        .find_map(|change| match change {
            ImageChange::Gained {
                process, mapping, ..
            } if mapping.path == path => Some((process, mapping)),
            _ => None,
        });
    found.expect("the library that was replaced is still in use")
}
