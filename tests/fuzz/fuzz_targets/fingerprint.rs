//! Machine code with any instruction in it as the sampled one: two bytes for where it begins,
//! then the code.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tlsprof_evidence::fingerprint::compiled::{REACH, is_chacha20_poly1305_for, is_curve_for};
use tlsprof_evidence::fingerprint::{Machine, classify_for};

fuzz_target!(|input: &[u8]| {
    let Some((&[high, low], code)) = input.split_first_chunk::<2>() else {
        return;
    };
    let at = usize::from(u16::from_be_bytes([high, low]));
    for machine in [Machine::X86_64, Machine::Aarch64] {
        let kind = classify_for(machine, code, at);
        assert_eq!(kind, classify_for(machine, code, at));
        // The same bytes at another place, among others that are too far off to count.
        if at >= 128 && code.len() >= at + 128 {
            let moved = [&[0x90; 128], code, &[0x90; 8]].concat();
            assert_eq!(kind, classify_for(machine, &moved, at + 128));
        }
        let shown = |code: &[u8], at| {
            let is_cipher = is_chacha20_poly1305_for(machine, code, at);
            (is_cipher, is_curve_for(machine, code, at))
        };
        assert_eq!(shown(code, at), shown(code, at));
        if at >= REACH && code.len() >= at + REACH {
            let moved = [&[0x90; 128], code, &[0x90; 8]].concat();
            assert_eq!(shown(code, at), shown(&moved, at + 128));
        }
    }
});
