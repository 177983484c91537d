//! Verdicts on code.

use super::*;

#[test]
fn nothing_is_nothing() {
    for machine in [Machine::X86_64, Machine::Aarch64] {
        assert_eq!(classify_for(machine, &[], 0), Kind::Other);
        assert_eq!(classify_for(machine, &[0x90], 5), Kind::Other);
    }
}
