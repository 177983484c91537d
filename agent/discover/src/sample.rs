//! Files for tests.
#![allow(clippy::panic, reason = "a test that lacks its file should stop")]

use std::path::{Path, PathBuf};

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
