//! The embedded BPF object, and its programs on uprobes.

use std::collections::BTreeSet;

use aya::programs::{Program, UProbe};
use aya::sys::{UProbeMultiFeature, is_uprobe_multi_supported};
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};

use super::connections::Storage;
use super::cookies::{is_substitute, substitutes};
use super::load::{LoadError, denied, program, refused};
use tlsprof_common::causes::one_line;

static SINGLE: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/tlsprof.single.bpf.o"));
static MULTI: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/tlsprof.multi.bpf.o"));

/// How uprobes are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UprobeMode {
    /// One link for many sites (Linux 6.6): attached and released together, fast.
    Multi,
    /// One perf event per site.
    Single,
}

/// Connections at once that are kept by the addresses of their sockets, some 150
/// bytes each; in the sockets themselves there is no limit.
const CONNECTIONS_BY_ADDRESS: u32 = 131_072;

/// How large the kernel's tables are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tables {
    /// Handshakes at once.
    pub handshakes: u32,
    /// Different samples until they are taken.
    pub samples: u32,
}

impl Tables {
    /// For what is only tried.
    pub(super) const SMALLEST: Self = Self {
        handshakes: 1,
        samples: 1,
    };
}

/// Makes the maps; no program is loaded yet.
pub(super) fn open(
    btf: &Btf,
    mode: UprobeMode,
    storage: Storage,
    tables: Tables,
) -> Result<Ebpf, LoadError> {
    let key = random_key();
    let mut loader = EbpfLoader::new();
    loader
        .btf(btf)
        .map_max_entries("handshakes", tables.handshakes)
        .map_max_entries("exchanges", tables.handshakes)
        .map_max_entries("samples", tables.samples)
        .map_max_entries("samples_in_lead", tables.samples)
        .override_global("remote_key", &key, true);
    if storage == Storage::Addresses {
        loader
            .override_global("connections_by_address", &1_u8, true)
            .map_max_entries("addresses", CONNECTIONS_BY_ADDRESS);
    }
    let object = match mode {
        UprobeMode::Multi => MULTI,
        UprobeMode::Single => SINGLE,
    };
    loader.load(object).map_err(|error| {
        if denied(&error) {
            LoadError::Permission
        } else {
            LoadError::Maps(error.into())
        }
    })
}

/// Tells remote endpoints apart; drawn from the key that the standard library draws
/// for its hash maps.
fn random_key() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(std::process::id())
}

pub(super) fn best_mode() -> UprobeMode {
    match is_uprobe_multi_supported(UProbeMultiFeature::LinkCreation) {
        Ok(true) => UprobeMode::Multi,
        Ok(false) | Err(_) => UprobeMode::Single,
    }
}

/// Each by itself: what measures the cost of a trap is there even if probes in
/// libraries are not. Returns the kernel's reason why those are not, and whether
/// there are attach cookies.
pub(super) fn load_uprobes(bpf: &mut Ebpf) -> Result<(Result<(), String>, bool), LoadError> {
    let mut library = Ok(());
    let mut has_cookies = true;
    for name in uprobes(bpf) {
        let error = match load_uprobe(bpf, &name) {
            Ok(()) => continue,
            Err(LoadError::Permission) => return Err(LoadError::Permission),
            Err(error) => error,
        };
        let mut substitutes = substitutes(&name).peekable();
        if substitutes.peek().is_some() {
            has_cookies = false;
            if substitutes.all(|name| load_uprobe(bpf, name).is_ok()) {
                continue;
            }
        }
        library = library.and_then(|()| Err(one_line(&error)));
    }
    Ok((library, has_cookies))
}

/// The programs on uprobes by the name of their C function, without those that stand for others.
fn uprobes(bpf: &Ebpf) -> BTreeSet<String> {
    let uprobes = bpf
        .programs()
        .filter(|(_, program)| matches!(program, Program::UProbe(_)));
    let names = uprobes.map(|(name, _)| name.to_owned());
    names.filter(|name| !is_substitute(name)).collect()
}

fn load_uprobe(bpf: &mut Ebpf, name: &str) -> Result<(), LoadError> {
    let program: &mut UProbe = program(bpf, name)?;
    program.load().map_err(refused(name))
}
