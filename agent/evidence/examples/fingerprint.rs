//! Names what machine code does: lines of `BEFORE CODE` in hexadecimal in, where the
//! sampled instruction begins CODE, its kind out. For
//! the tests and for looking at fingerprints at a desk; `aarch64` as the argument for its
//! instructions.

use std::io::{self, BufRead, Write};

use tlsprof_evidence::fingerprint::{Machine, classify_for};

fn main() -> io::Result<()> {
    let aarch64 = std::env::args()
        .nth(1)
        .is_some_and(|name| name == "aarch64");
    let machine = if aarch64 {
        Machine::Aarch64
    } else {
        Machine::X86_64
    };
    let mut out = io::BufWriter::new(io::stdout());
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (before, code) = line.split_once(' ').unwrap_or_default();
        let around = bytes(&format!("{before}{code}"));
        writeln!(
            out,
            "{:?}",
            classify_for(machine, &around, before.len() / 2)
        )?;
    }
    out.flush()
}

fn bytes(hex: &str) -> Vec<u8> {
    let (pairs, _) = hex.as_bytes().as_chunks::<2>();
    let digits = pairs
        .iter()
        .filter_map(|pair| std::str::from_utf8(pair).ok());
    digits
        .filter_map(|pair| u8::from_str_radix(pair, 16).ok())
        .collect()
}
