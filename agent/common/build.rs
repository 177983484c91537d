//! Generates the Rust side of the contract between the BPF programs and the agent.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

mod clang;

use clang::{clang, machine_headers};

fn main() -> Result<()> {
    let headers = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../bpf/include");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed={}", headers.display());
    println!("cargo::rerun-if-env-changed=CLANG");
    generate_contract(&clang()?, &headers, &out.join("contract.rs"))
}

/// Where the compiler has its own headers, such as <stdbool.h>.
fn own_headers(clang: &str) -> Result<PathBuf> {
    let output = Command::new(clang)
        .arg("-print-resource-dir")
        .output()
        .with_context(|| format!("cannot run {clang}"))?;
    let folder = String::from_utf8(output.stdout).context("clang's folder is not UTF-8")?;
    Ok(Path::new(folder.trim_end()).join("include"))
}

fn generate_contract(clang: &str, headers: &Path, file: &Path) -> Result<()> {
    let header = headers.join("contract.h");
    bindgen::Builder::default()
        .header(header.to_string_lossy())
        // Named because builds for other machines take the usual places away (-nostdinc).
        .clang_arg(format!("-idirafter{}", own_headers(clang)?.display()))
        .clang_arg(format!("-idirafter{}", machine_headers()?.display()))
        .clang_arg("-idirafter/usr/include")
        .allowlist_item("(tlsprof|TLSPROF)_.*")
        .prepend_enum_name(false)
        .derive_default(true)
        .generate_comments(false)
        .generate()
        .context("cannot read bpf/include/contract.h (libclang comes with `make setup`)")?
        .write_to_file(file)
        .context("cannot write the generated contract")
}
