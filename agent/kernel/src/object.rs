//! The embedded BPF object, and its programs on uprobes.

use std::collections::BTreeSet;
use std::io::Read as _;

use aya::maps::Map;
use aya::programs::{Program, ProgramError, UProbe};
use aya::sys::{UProbeMultiFeature, is_uprobe_multi_supported};
use aya::{Btf, Ebpf, EbpfLoader};
use flate2::read::ZlibDecoder;

use super::cookies::{is_substitute, substitutes};
use super::error::{LoadError, Unavailable, denied, refused};

// Compressed by the build script.
static SINGLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tlsprof.single.bpf.o.z"));
static MULTI: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tlsprof.multi.bpf.o.z"));

/// How uprobes are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UprobeMode {
    /// One link for many sites (Linux 6.6): attached and released together, fast.
    Multi,
    /// One perf event per site.
    Single,
}

/// Where the state of connections is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// In the sockets, and in a hash for those that open while calls are not seen.
    Sockets,
    /// In a hash by the addresses of the sockets: where programs have no storage
    /// in sockets (Linux 5.10), or no pointer that the kernel takes for a socket's.
    Addresses,
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
    /// Connections at once that opened while calls were not seen, some 200 bytes each; others are in
    /// their sockets.
    pub unfollowed: u32,
}

impl Tables {
    /// For what is only tried.
    pub(super) const SMALLEST: Self = Self {
        handshakes: 1,
        samples: 1,
        unfollowed: 1,
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
        .map_max_entries("backdated_samples", tables.samples)
        .map_max_entries("addresses", tables.unfollowed)
        .override_global("remote_key", &key, true);
    if storage == Storage::Addresses {
        loader
            .override_global("connections_by_address", &1_u8, true)
            .map_max_entries("addresses", CONNECTIONS_BY_ADDRESS);
    }
    let packed = match mode {
        UprobeMode::Multi => MULTI,
        UprobeMode::Single => SINGLE,
    };
    let mut object = Vec::new();
    ZlibDecoder::new(packed)
        .read_to_end(&mut object)
        .map_err(|error| LoadError::Maps(error.into()))?;
    loader.load(&object).map_err(|error| {
        if denied(&error) {
            LoadError::Permission
        } else {
            LoadError::Maps(error.into())
        }
    })
}

/// Distinguishes remote endpoints; drawn from the key that the standard library draws
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

/// The programs on uprobes.
pub(super) struct Uprobes {
    /// Whether all those for TLS libraries are loaded.
    pub library: Result<(), Unavailable>,
    /// Attached probes have cookies (Linux 5.15); else programs stand for them.
    pub(crate) has_cookies: bool,
}

/// Each by itself: what measures the cost of a trap is there even if probes in
/// libraries are not.
pub(super) fn load_uprobes(bpf: &mut Ebpf) -> Result<Uprobes, LoadError> {
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
        library = library.and(Err(Unavailable::Load(error)));
    }
    Ok(Uprobes {
        library,
        has_cookies,
    })
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

/// Takes a map out of the object.
pub(super) fn take_map(bpf: &mut Ebpf, name: &'static str) -> Result<Map, LoadError> {
    bpf.take_map(name)
        .ok_or_else(|| LoadError::Maps(anyhow::anyhow!("no map {name} in the object")))
}

/// A program of the object by name.
pub(super) fn any_program<'a>(bpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Program, LoadError> {
    bpf.program_mut(name)
        .ok_or_else(|| LoadError::Maps(anyhow::anyhow!("no program {name} in the object")))
}

/// A program of the object by name and type.
pub(super) fn program<'a, T>(bpf: &'a mut Ebpf, name: &str) -> Result<&'a mut T, LoadError>
where
    &'a mut T: TryFrom<&'a mut Program, Error = ProgramError>,
{
    any_program(bpf, name)?.try_into().map_err(refused(name))
}
