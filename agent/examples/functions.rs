//! What the functions of programs and libraries compute, by their code and by which calls which: for each file the number
//! of its functions, and each that is identified with what its name says, if it has one.
//!
//! For looking for false positives among ordinary programs: `functions /usr/bin/* /usr/lib/*/*.so*`.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;

use tlsprof_discover::elf::{Arch, ElfView};
use tlsprof_evidence::fingerprint::Machine;
use tlsprof_evidence::primitive::{MAX_FUNCTION, Primitive, by_code, by_name, identify_all};

fn main() {
    let mut functions = 0;
    for path in env::args().skip(1) {
        functions += look_at(&path).unwrap_or_default();
    }
    println!("{functions} functions");
}

/// None if it is no image, or has no table of its functions.
fn look_at(path: &str) -> Option<usize> {
    let image = ElfView::open(File::open(path).ok()?).ok()?;
    let all = image.all_function_bounds().ok()?;
    let machine = match image.arch() {
        Arch::X86_64 => Machine::X86_64,
        Arch::Aarch64 => Machine::Aarch64,
        Arch::Other(_) => return None,
    };
    let memory = |at, size| image.constants(at, size);
    let mut found: BTreeMap<u64, Primitive> = identify_all(machine, &all, memory)
        .into_iter()
        .map(|((first, _), primitive)| (first, primitive))
        .collect();
    if found.is_empty() {
        // It may be too large for that.
        found.extend(all.iter().filter_map(|(first, end)| {
            let size = (end - first).min(MAX_FUNCTION as u64);
            let code = image.code(*first, size).ok()?;
            Some((*first, by_code(machine, &code, *first, memory)?))
        }));
    }
    let addresses: Vec<u64> = found.keys().copied().collect();
    let names = image.names_at(&addresses).unwrap_or_default();
    for (address, primitive) in found {
        let name = names.get(&address).map_or("", String::as_str);
        let named = by_name(name).label();
        println!("{path} {address:#x} {} {named} {name}", primitive.label());
    }
    Some(all.len())
}
