//! Compiles the BPF programs with clang and generates the Rust side of their
//! contract with the agent. The running kernel is not asked: CO-RE relocates
//! the programs when they are loaded.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

/// Tried in this order when `CLANG` is not set: the distribution's default, then
/// newer ones by name.
const CLANGS: &[&str] = &[
    "clang", "clang-22", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16",
    "clang-15", "clang-14",
];

fn main() -> Result<()> {
    let bpf = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../bpf");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed={}", bpf.display());
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = clang()?;
    let target = Target::of_this_build()?;
    let objects: [(&str, &[&str]); 2] = [("single", &[]), ("multi", &["-DTLSPROF_UPROBE_MULTI"])];
    for (name, extra) in objects {
        let object = out.join(format!("tlsprof.{name}.bpf.o"));
        compile(&clang, &target, &bpf, &object, extra)?;
    }
    generate_contract(&clang, &target, &bpf, &out.join("contract.rs"))
}

fn clang() -> Result<String> {
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

/// The machine that is built for, which need not be the one that builds.
struct Target {
    /// The end of the macro by which libbpf's bpf_tracing.h knows it.
    arch: &'static str,
    /// Its <asm/> headers on Debian and Ubuntu: on such a machine, or from the packages for
    /// cross compilers on another.
    include: PathBuf,
}

impl Target {
    fn of_this_build() -> Result<Self> {
        let machine = env::var("CARGO_CFG_TARGET_ARCH")?;
        let arch = match machine.as_str() {
            "x86_64" => "x86",
            "aarch64" => "arm64",
            other => bail!("tlsprof has no BPF programs for {other}"),
        };
        let own = PathBuf::from(format!("/usr/include/{machine}-linux-gnu"));
        let cross = PathBuf::from(format!("/usr/{machine}-linux-gnu/include"));
        let include = if own.join("asm").is_dir() { own } else { cross };
        Ok(Self { arch, include })
    }
}

fn compile(clang: &str, target: &Target, bpf: &Path, object: &Path, extra: &[&str]) -> Result<()> {
    let output = Command::new(clang)
        .args([
            "-target",
            "bpf",
            "-mcpu=v3",
            "-O2",
            "-g",
            "-std=gnu17",
            "-Wall",
            "-Wextra",
            "-Werror",
        ])
        .args(["-Wno-unused-parameter", "-fno-stack-protector"])
        .arg(format!("-D__TARGET_ARCH_{}", target.arch))
        .args(extra)
        .arg(format!("-I{}", target.include.display()))
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

/// Where the compiler has its own headers, such as <stdbool.h>.
fn own_headers(clang: &str) -> Result<PathBuf> {
    let output = Command::new(clang)
        .arg("-print-resource-dir")
        .output()
        .with_context(|| format!("cannot run {clang}"))?;
    let folder = String::from_utf8(output.stdout).context("clang's folder is not UTF-8")?;
    Ok(Path::new(folder.trim_end()).join("include"))
}

fn generate_contract(clang: &str, target: &Target, bpf: &Path, file: &Path) -> Result<()> {
    // It includes the contract; of its own, only the map value that the agent reads.
    let header = bpf.join("include/exchange.h");
    bindgen::Builder::default()
        .header(header.to_string_lossy())
        .clang_args(["-include", "linux/types.h", "-DTLSPROF_NATIVE"])
        // Named because builds for other machines take the usual places away (-nostdinc).
        .clang_arg(format!("-idirafter{}", own_headers(clang)?.display()))
        .clang_arg(format!("-idirafter{}", target.include.display()))
        .clang_arg("-idirafter/usr/include")
        .allowlist_item("(tlsprof|TLSPROF)_.*|exchange")
        .prepend_enum_name(false)
        .derive_default(true)
        .generate_comments(false)
        .generate()
        .context("cannot read bpf/include/contract.h (libclang comes with `make setup`)")?
        .write_to_file(file)
        .context("cannot write the generated contract")
}
