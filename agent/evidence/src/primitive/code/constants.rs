//! Constants that prove an algorithm: whole values in memory that code refers to. Single words are no
//! proof: 0xffffffff00000001 is in the prime of P-256, and in a constant of P-384.

use std::sync::LazyLock;

use crate::primitive::Primitive;

/// A value, and what it proves.
struct Constant {
    primitive: Primitive,
    /// Little endian.
    bytes: Vec<u8>,
    /// Table that it is the beginning of.
    table: Option<Table>,
}

/// Table of which only the beginning is compared.
#[derive(Clone, Copy)]
struct Table {
    /// Bytes.
    extent: usize,
    /// Words behind the first row. Linkers put rows that compilers load as vectors among constants of other functions.
    second_row: [u64; 2],
}

/// The longest extent.
pub(super) const REACH: usize = 640;

const ONES: u64 = u64::MAX;
const SHA_256: u64 = 0x7137_4491_428a_2f98;

static CONSTANTS: LazyLock<Vec<Constant>> = LazyLock::new(|| {
    let wide: [(Primitive, &[u64]); 12] = [
        // SEC 2, 2.4.2: prime and order; 2^512 modulo the prime, which brings numbers into Montgomery's form.
        (
            Primitive::P256,
            &[ONES, 0xffff_ffff, 0, 0xffff_ffff_0000_0001],
        ),
        (
            Primitive::P256,
            &[
                0xf3b9_cac2_fc63_2551,
                0xbce6_faad_a717_9e84,
                ONES,
                0xffff_ffff_0000_0000,
            ],
        ),
        (
            Primitive::P256,
            &[
                3,
                0xffff_fffb_ffff_ffff,
                0xffff_ffff_ffff_fffe,
                0x4_ffff_fffd,
            ],
        ),
        // 2.5.1
        (
            Primitive::P384,
            &[
                0xffff_ffff,
                0xffff_ffff_0000_0000,
                0xffff_ffff_ffff_fffe,
                ONES,
                ONES,
                ONES,
            ],
        ),
        (
            Primitive::P384,
            &[
                0xecec_196a_ccc5_2973,
                0x581a_0db2_48b0_a77a,
                0xc763_4d81_f437_2ddf,
                ONES,
                ONES,
                ONES,
            ],
        ),
        // 2.6.1
        (
            Primitive::P521,
            &[ONES, ONES, ONES, ONES, ONES, ONES, ONES, ONES, 0x1ff],
        ),
        (
            Primitive::P521,
            &[
                0xbb6f_b71e_9138_6409,
                0x3bb5_c9b8_899c_47ae,
                0x7fcc_0148_f709_a5d0,
                0x5186_8783_bf2f_966b,
                0xffff_ffff_ffff_fffa,
                ONES,
                ONES,
                ONES,
                0x1ff,
            ],
        ),
        // RFC 8032, 5.1: prime and order.
        (Primitive::Curve25519, &[ONES - 18, ONES, ONES, ONES >> 1]),
        (
            Primitive::Curve25519,
            &[
                0x5812_631a_5cf5_d3ed,
                0x14de_f9de_a2f7_9cd6,
                0,
                0x1000_0000_0000_0000,
            ],
        ),
        // FIPS 202, 3.2.5: the first of 24 round constants.
        (
            Primitive::Sha3,
            &[1, 0x8082, 0x8000_0000_0000_808a, 0x8000_0000_8000_8000],
        ),
        // FIPS 180-4, 4.2.2 and 4.2.3: the first round constants.
        (Primitive::Sha, &[SHA_256, 0xe9b5_dba5_b5c0_fbcf]),
        (
            Primitive::Sha,
            &[0x428a_2f98_d728_ae22, 0x7137_4491_23ef_65cd],
        ),
    ];
    let constant = |(primitive, words): (Primitive, &[u64])| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let table = match (primitive, words) {
            (Primitive::Sha3, _) => Some(Table {
                extent: 24 * 8,
                second_row: [0x808b, 0x8000_0001],
            }),
            // 64 words of 32 bits; 80 of 64.
            (Primitive::Sha, [SHA_256, ..]) => Some(Table {
                extent: 64 * 4,
                second_row: [0x59f1_11f1_3956_c25b, 0xab1c_5ed5_923f_82a4],
            }),
            (Primitive::Sha, _) => Some(Table {
                extent: 80 * 8,
                second_row: [0xb5c0_fbcf_ec4d_3b2f, 0xe9b5_dba5_8189_dbbc],
            }),
            _ => None,
        };
        Constant {
            primitive,
            bytes,
            table,
        }
    };
    wide.map(constant).into()
});

impl Constant {
    /// Whether it begins there, and reaches as far as `at`.
    fn holds(&self, memory: &[u8], start: usize, at: usize) -> bool {
        let memory = memory.get(start..).unwrap_or_default();
        let has = |offset: usize, bytes: &[u8]| {
            let rest = memory.get(offset..);
            rest.is_some_and(|rest| rest.starts_with(bytes))
        };
        // Most places already differ in the first word.
        memory.first_chunk::<8>() == self.bytes.first_chunk()
            && has(0, &self.bytes)
            && at - start < self.extent(has)
    }

    /// In bytes, as far as it belongs together. `has`: whether there are those bytes at an offset.
    fn extent(&self, has: impl Fn(usize, &[u8]) -> bool) -> usize {
        let row = self.bytes.len();
        let Some(table) = self.table else {
            return row;
        };
        let second_row = table.second_row.map(u64::to_le_bytes);
        let second_row = second_row.as_flattened();
        if has(row, second_row) {
            table.extent
        } else if has(row, &self.bytes) && has(2 * row, second_row) {
            // Tables for vectors have each row twice.
            2 * table.extent
        } else {
            row
        }
    }
}

/// What the value proves that `memory[at]` lies in.
pub(super) fn at(memory: &[u8], at: usize) -> Option<Primitive> {
    let holds = |constant: &&Constant| {
        let longest = match constant.table {
            Some(_) => REACH,
            None => constant.bytes.len(),
        };
        let first = (at + 1).saturating_sub(longest);
        // Code refers to whole words of it.
        let mut starts = (first..=at).rev().step_by(4);
        starts.any(|start| constant.holds(memory, start, at))
    };
    CONSTANTS.iter().find(holds).map(|one| one.primitive)
}
