//! From marks to a verdict. The order matters: what nothing else uses comes first.

use super::marks::Marks;

/// What code does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// AES rounds, and carry-less multiplication for GHASH.
    Aes,
    /// ChaCha20 or Poly1305. As a source of random numbers, too: SQLite, Go's runtime.
    ChaCha,
    /// SHA-1 or SHA-2.
    Sha,
    /// Wide multiplication with carry chains: Montgomery, curve arithmetic.
    PublicKey,
    /// Copying of memory.
    Copy,
    /// Anything else.
    Other,
}

/// ChaCha20 rotates to the left by these (RFC 8439, 2.1).
const CHACHA: [usize; 4] = [16, 12, 8, 7];
/// Of those, the ones that vectors cannot do by shuffling bytes; and the shifts to the right
/// that complete them.
const CHACHA_LEFT: [usize; 2] = [12, 7];
const CHACHA_RIGHT: [usize; 2] = [20, 25];

/// Poly1305 in vectors has limbs of 26 bits; with 52-bit multiplication 44, 44 and 42, and
/// then 24 and 40 bits of the message for one limb. Shifts to the right.
const POLY1305: [usize; 1] = [26];
const POLY1305_52: [usize; 4] = [44, 42, 24, 40];

/// RSA in vectors has limbs of 29 bits.
const RADIX_29: [usize; 1] = [29];

/// Groups of rotations to the left by which the sigma functions of SHA-2 are recognised, as FIPS
/// 180-4 (4.1.2, 4.1.3) has them, and one after the other as they are mostly written.
const SHA256: [[usize; 3]; 4] = [
    [32 - 6, 32 - 11, 32 - 25],
    [32 - 2, 32 - 13, 32 - 22],
    [32 - 14, 32 - 5, 32 - 6],
    [32 - 9, 32 - 11, 32 - 2],
];
const SHA512: [[usize; 3]; 4] = [
    [64 - 14, 64 - 18, 64 - 41],
    [64 - 28, 64 - 34, 64 - 39],
    [64 - 23, 64 - 4, 64 - 14],
    [64 - 5, 64 - 6, 64 - 28],
];

/// What code with these marks does.
pub(super) fn judge(marks: &Marks) -> Kind {
    if is_aes(marks) {
        Kind::Aes
    } else if is_chacha(marks) {
        Kind::ChaCha
    } else if is_ghash(marks) {
        Kind::Aes
    } else if is_sha(marks) {
        Kind::Sha
    } else if is_poly1305(marks) {
        Kind::ChaCha
    } else if is_public_key(marks) {
        Kind::PublicKey
    } else if is_copy(marks) {
        Kind::Copy
    } else {
        Kind::Other
    }
}

/// Hash functions also use rounds of AES, but never the last, which is a weaker mixer, and
/// they mix a value with itself, with constants, or in both directions.
fn is_aes(marks: &Marks) -> bool {
    if marks.aes_last > 0 || marks.aes > 0 {
        return true;
    }
    let both = marks.aes_encrypting > 0 && marks.aes_decrypting > 0;
    let rounds = marks.aes_encrypting + marks.aes_decrypting;
    rounds > 4 * marks.aes_mixing && !both
}

fn is_chacha(marks: &Marks) -> bool {
    let mixes = marks.lanes_added32 >= 2 && marks.lanes_xored + marks.laid_over >= 2;
    let shifts = marks.lanes_left32.count(&CHACHA_LEFT) > 0
        && marks.lanes_left32.count(&CHACHA_LEFT) + marks.lanes_right32.count(&CHACHA_RIGHT) >= 2
        && marks.lanes_right32.count(&CHACHA_LEFT) == 0;
    let rotates = marks.lanes_rotated32.count(&CHACHA) >= 3;
    let scalar = marks.rotated32.distinct(&CHACHA) >= 3
        && marks.rotated32.count(&CHACHA) >= 4
        && marks.added >= 2
        && marks.xored >= 2;
    // Some code does Poly1305 in registers while ChaCha20 is done in vectors.
    let stitched = marks.lanes_added32 >= 3 && marks.multiplied + marks.carried >= 2;
    (mixes && (shifts || rotates)) || scalar || stitched || is_key_stream(marks)
}

/// Vectors of several blocks: the state is added, they are transposed into key streams, and
/// these are laid over the data.
fn is_key_stream(marks: &Marks) -> bool {
    let transposed = marks.lanes_transposed >= 12 && marks.lanes_added32 >= 2;
    let only = (marks.lanes_transposed + marks.lanes_added32) * 5 >= marks.instructions * 4;
    let over = marks.laid_over >= 4
        && marks.stores >= 3
        && (marks.laid_over + marks.stores + marks.lanes_transposed) * 5 >= marks.instructions * 4;
    (transposed && only) || over
}

/// GHASH makes four products of one block, of which two are of a low and a high half; or
/// three, the third of the sums of the halves, for which it swaps them (Karatsuba). The
/// folding of a CRC makes two, and only its end has a few that look like more.
fn is_ghash(marks: &Marks) -> bool {
    let products = marks.carry_less;
    if products.all() < 3 || products.low == 0 || products.high == 0 || marks.crc > 0 {
        return false;
    }
    let four = products.crossed * 3 >= products.all() && products.high * 2 >= products.low;
    four || marks.halves_swapped > 0
}

fn is_sha(marks: &Marks) -> bool {
    let sha256 = SHA256
        .iter()
        .any(|group| marks.rotated32.distinct(group) >= 2);
    let sha512 = SHA512
        .iter()
        .any(|group| marks.rotated64.distinct(group) >= 2);
    // The second rotates what was rotated before: its own is 30 (FIPS 180-4, 6.1.2).
    let sha1 = marks.rotated32.count(&[5]) > 0 && marks.rotated32.count(&[30, 25]) > 0;
    marks.sha > 0 || (marks.added >= 2 && (sha256 || sha512 || sha1))
}

/// Vectors in radix 2^26 need 25 products and as many sums for a set of blocks, and little
/// else. Registers need two limbs of 64 bits, and two bits; what is above is multiplied by 5:
/// once as it is, and once shifted by two bits.
fn is_poly1305(marks: &Marks) -> bool {
    let arithmetic = marks.lanes_multiplied + marks.lanes_added64;
    let dense = marks.lanes_multiplied >= 4
        && marks.lanes_added64 >= 3
        && arithmetic * 5 >= marks.instructions * 2;
    let carries = marks.lanes_right64.count(&POLY1305) > 0 && arithmetic >= 3;
    let carries52 = marks.lanes_right64.distinct(&POLY1305_52) >= 2;
    let lanes52 = marks.lanes_multiplied52 >= 2 && marks.lanes_carried + marks.multiplied == 0;
    let split = marks.lowest_two > 0 && marks.but_two > 0 && marks.shifted_two > 0;
    let scalar = marks.carried > 0 && split;
    scalar || ((dense || carries) && !is_rsa_in_lanes(marks)) || carries52 || lanes52
}

/// Chains of additions with carry; many products of limbs so short that none is needed; or
/// products of vectors (almost Montgomery multiplication).
fn is_public_key(marks: &Marks) -> bool {
    let scalar = marks.carried >= 3 || (marks.carried >= 2 && marks.multiplied >= 1);
    let lanes52 = marks.lanes_multiplied52 >= 2;
    let limbs = marks.multiplied_short >= 10;
    scalar || limbs || lanes52 || is_rsa_in_lanes(marks)
}

/// One number's limbs are multiplied by one limb of the other, in all lanes; Poly1305 has
/// other blocks of the message in other lanes.
fn is_rsa_in_lanes(marks: &Marks) -> bool {
    let one_limb = marks.lanes_broadcast > 0 || marks.lanes_right64.count(&RADIX_29) > 0;
    marks.lanes_multiplied >= 2 && one_limb
}

fn is_copy(marks: &Marks) -> bool {
    let moves = marks.loads + marks.stores;
    let moving = marks.loads > 0 && marks.stores > 0 && marks.lanes_computed == 0;
    marks.copies || (moving && moves * 2 >= marks.instructions)
}
