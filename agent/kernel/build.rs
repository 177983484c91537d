//! Compiles the BPF programs with clang. The running kernel is not asked: CO-RE relocates the
//! programs when they are loaded.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, io};

use anyhow::{Context as _, Result, bail, ensure};
use flate2::Compression;
use flate2::write::ZlibEncoder;

#[path = "../common/clang.rs"]
mod clang;

use clang::{clang, machine_headers};

fn main() -> Result<()> {
    let bpf = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../bpf");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed={}", bpf.display());
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = clang()?;
    let objects: [(&str, &[&str]); 2] = [("single", &[]), ("multi", &["-DTLSPROF_UPROBE_MULTI"])];
    for (name, extra) in objects {
        let object = out.join(format!("tlsprof.{name}.bpf.o"));
        compile(&clang, &bpf, &object, extra)?;
        compress(&object)?;
    }
    Ok(())
}

/// Writes the object beside itself, compressed: a fourth of its size in the program.
fn compress(object: &Path) -> Result<()> {
    let packed = File::create(object.with_extension("o.z"))?;
    let mut encoder = ZlibEncoder::new(packed, Compression::best());
    io::copy(&mut File::open(object)?, &mut encoder)?;
    encoder.finish()?;
    Ok(())
}

/// The end of the macro by which libbpf's bpf_tracing.h knows the machine that is built for.
fn arch() -> Result<&'static str> {
    match env::var("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "x86_64" => Ok("x86"),
        "aarch64" => Ok("arm64"),
        other => bail!("tlsprof has no BPF programs for {other}"),
    }
}

fn compile(clang: &str, bpf: &Path, object: &Path, extra: &[&str]) -> Result<()> {
    let flags = std::fs::read_to_string(bpf.join("compile_flags.txt"))
        .context("cannot read bpf/compile_flags.txt")?;
    let output = Command::new(clang)
        .arg(format!("-D__TARGET_ARCH_{}", arch()?))
        // Before the machines in the file, one of which builds.
        .arg(format!("-I{}", machine_headers()?.display()))
        .args(flags.lines())
        // One file alone does not use all of its headers; all together do.
        .arg("-Wunused-function")
        .args(extra)
        // Debug information shall not tell where somebody built it.
        .arg(format!("-ffile-prefix-map={}=bpf", bpf.display()))
        .arg("-fdebug-compilation-dir=.")
        .arg("-c")
        .arg(bpf.join("tlsprof.bpf.c"))
        .arg("-o")
        .arg(object)
        .output()
        .with_context(|| format!("cannot run {clang}"))?;
    ensure!(
        output.status.success(),
        "{clang} failed on bpf/tlsprof.bpf.c (libbpf headers come with `make setup`):\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
