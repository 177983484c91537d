//! The code of a whole function, and what it refers to: four bytes for where the code is and how long, the
//! code, and then the memory behind it. The same function as the only one that an image describes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tlsprof_evidence::fingerprint::Machine;
use tlsprof_evidence::primitive::{by_code, identify_all};

fuzz_target!(|input: &[u8]| {
    let Some((&[place, more, high, low], rest)) = input.split_first_chunk::<4>() else {
        return;
    };
    let address = u64::from_be_bytes([place, more, 0, 0, 0, 0, 0x10, 0]);
    let length = usize::from(u16::from_be_bytes([high, low])).min(rest.len());
    let (code, _) = rest.split_at(length);
    // What is read lies within the input: anything else is the end of the image.
    let memory = |at: u64, size: usize| {
        let from = usize::try_from(at.wrapping_sub(address)).unwrap_or(usize::MAX);
        let found = rest.get(from..).unwrap_or_default();
        found[..size.min(found.len())].to_vec()
    };
    for machine in [Machine::X86_64, Machine::Aarch64] {
        let found = by_code(machine, code, address, memory);
        assert_eq!(found, by_code(machine, code, address, memory));
        let described = [(address, address.saturating_add(code.len() as u64))];
        identify_all(machine, &described, memory);
    }
});
