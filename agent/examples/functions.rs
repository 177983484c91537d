//! What the functions of programs and libraries compute, by their code alone: for each file the number
//! of its functions, and each that is identified with what its name says, if it has one.
//!
//! For looking for false positives among ordinary programs: `functions /usr/bin/* /usr/lib/*/*.so*`.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;

use tlsprof_discover::elf::ElfView;
use tlsprof_evidence::primitive::{MAX_FUNCTION, Primitive, by_code, by_name};

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
    let mut found: BTreeMap<u64, Primitive> = BTreeMap::new();
    for (first, end) in &all {
        let size = (end - first).min(MAX_FUNCTION as u64);
        let Ok(code) = image.code(*first, size) else {
            continue;
        };
        let primitive = by_code(&code, *first, |at, size| image.memory(at, size));
        found.extend(primitive.map(|primitive| (*first, primitive)));
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
