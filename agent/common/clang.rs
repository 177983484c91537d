//! What compiles the BPF programs, and which machine for: shared by build scripts.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

/// Tried in this order when `CLANG` is not set: the distribution's default, then
/// newer ones by name.
const CLANGS: &[&str] = &[
    "clang", "clang-22", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16",
    "clang-15", "clang-14",
];

pub fn clang() -> Result<String> {
    let wanted = env::var("CLANG").ok();
    let names = wanted
        .iter()
        .map(String::as_str)
        .chain(CLANGS.iter().copied());
    for name in names {
        if Command::new(name)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
        {
            return Ok(name.to_owned());
        }
    }
    bail!("no clang found: run `make setup`, or set CLANG to one of version 14 or later")
}

/// The <asm/> headers of the machine that is built for, which need not be the one that builds: on
/// such a machine of Debian or Ubuntu, or from the packages for cross compilers on another.
pub fn machine_headers() -> Result<PathBuf> {
    let machine = env::var("CARGO_CFG_TARGET_ARCH")?;
    let own = PathBuf::from(format!("/usr/include/{machine}-linux-gnu"));
    let cross = PathBuf::from(format!("/usr/{machine}-linux-gnu/include"));
    Ok(if own.join("asm").is_dir() { own } else { cross })
}
