//! Files for tests.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that lacks its file should stop"
)]

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tlsprof_common::Pid;

/// A file of the packages of OpenSSL and GnuTLS (`make setup` installs it).
pub fn installed(name: &str) -> PathBuf {
    let machine = format!("{}-linux-gnu", std::env::consts::ARCH);
    let folders = [
        "/usr/lib".into(),
        format!("/usr/lib/{machine}"),
        "/usr/lib64".into(),
    ];
    let mut paths = folders.iter().map(|folder| Path::new(folder).join(name));
    let found = paths.find(|path| path.exists());
    found.unwrap_or_else(|| panic!("{name} is not installed: run `make setup`"))
}

/// Adds a process to a copy of parts of /proc, with its own id in a namespace, that wrote a map for perf: `map`, or
/// nothing yet. Returns where the map is.
///
/// # Panics
/// If the files cannot be written.
pub fn add_perf_map(tree: &Path, pid: Pid, map: Option<&str>) -> PathBuf {
    let process = tree.join(pid.to_string());
    fs::create_dir_all(process.join("root/tmp")).unwrap();
    let user = fs::metadata(tree).unwrap().uid();
    let status = format!("NSpid:\t{pid}\t3\nUid:\t{user}\t{user}\t{user}\t{user}\n");
    fs::write(process.join("status"), status).unwrap();
    let path = process.join("root/tmp/perf-3.map");
    if let Some(map) = map {
        fs::write(&path, map).unwrap();
    }
    path
}
