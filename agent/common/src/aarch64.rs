//! What is read of AArch64 instructions in more than one layer.

/// The address that an `adr` or `adrp` at `at` puts into its register: 21 bits with a sign, of which
/// the lowest two are apart, are bytes or pages from there (Arm Architecture Reference Manual, DDI
/// 0487, C6.2).
#[must_use]
pub fn relative_address(word: u32, at: u64) -> u64 {
    let bits = (i64::from(word >> 5) & 0x7_ffff) << 2 | (i64::from(word >> 29) & 3);
    let distance = bits << (64 - 21) >> (64 - 21);
    match word >> 31 {
        0 => at.wrapping_add_signed(distance),
        _ => (at & !0xfff).wrapping_add_signed(distance << 12),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_pages_both_ways() {
        // adr x0, .+5; adr x0, .-1; adrp x16, of Debian's libssl; the page before.
        let words = [0x3000_0020, 0x70ff_ffe0, 0x9000_0490, 0xf0ff_fff0];
        let addresses = words.map(|word| relative_address(word, 0x1_efc4));
        assert_eq!(addresses, [0x1_efc9, 0x1_efc3, 0xa_e000, 0x1_d000]);
    }
}
