//! From signs to a verdict.

/// What an instruction may show of ChaCha20, or of Poly1305 in limbs of 26 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// Two registers of 64 bits, or one and memory, are multiplied.
    Product,
    /// A number is multiplied by five.
    FiveTimes,
    /// A shift to the right by 26 bits.
    Carry,
    /// An arithmetic shift to the right by another number of bits, as in reductions modulo primes of curves.
    Shift,
    /// 26 bits are taken, or taken off.
    Limb,
    /// The shifts to the right by which 128 bits are split into limbs, beside that by 26.
    Split(u32),
    /// A rotation of 32 bits to the left, by one of those of ChaCha20.
    Rotation(u32),
    /// A part of the constant that begins ChaCha20's state, and is added to it in the end.
    Constant,
}

/// The shifts of [`Sign::Split`]: 26 bits each, from halves of 64.
pub(super) const SPLIT: [u32; 3] = [14, 40, 52];

/// The rotations of [`Sign::Rotation`] (RFC 8439, 2.1).
pub(super) const ROTATIONS: [u32; 4] = [16, 12, 8, 7];

/// The constants of [`Sign::Constant`]: "expand 32-byte k" (RFC 8439, 2.3).
pub(super) const CONSTANTS: [u64; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// A sign, and the position of its instruction.
pub(super) type SignAt = (usize, Sign);

/// Between signs of one computation lie at most so many bytes: checks of types and bounds.
const APART: usize = 640;
/// So far from the first and the last sign code still belongs to it.
const AROUND: usize = 256;

/// A square has 15 products, a multiplication 25; what reduces the result may need a few more.
/// Ten limbs have at least 55.
const PRODUCTS: std::ops::RangeInclusive<usize> = 15..=40;
const LEAST_FIVE_TIMES: usize = 3;
const LEAST_CARRIES: usize = 3;
const LEAST_LIMBS: usize = 2;
/// Of each amount: a quarter round has one, and what is compiled has several.
const LEAST_ROTATIONS: usize = 4;

/// Curves have ten limbs at least, and a square 55 products; code before the sample may be out of reach.
const LEAST_CURVE_PRODUCTS: usize = 45;
/// Each of ten limbs carries, and what is above the others is brought back to several of them.
const LEAST_CURVE_SHIFTS: usize = 9;

/// What the signs of one computation show.
pub(super) type Verdict = fn(&[SignAt]) -> bool;

/// Whether `at` lies in or beside signs that show it. They are in the order of their positions.
pub(super) fn is_within(signs: &[SignAt], at: usize, shows: Verdict) -> bool {
    let apart = |a: &SignAt, b: &SignAt| b.0 - a.0 <= APART;
    signs.chunk_by(apart).any(|computation| {
        let ends = computation.first().zip(computation.last());
        let is_near = ends.is_some_and(|((first, _), (last, _))| {
            (first.saturating_sub(AROUND)..=last + AROUND).contains(&at)
        });
        is_near && shows(computation)
    })
}

pub(super) fn is_cipher(signs: &[SignAt]) -> bool {
    is_chacha20(signs) || is_poly1305(signs)
}

pub(super) fn is_curve(signs: &[SignAt]) -> bool {
    let count = |wanted| count(signs, wanted);
    // Poly1305 carries in between its products, and splits its blocks.
    let reduces = count(Sign::Product) == 0 && count(Sign::FiveTimes) == 0;
    let shifts = count(Sign::Carry) + count(Sign::Shift);
    count(Sign::Product) >= LEAST_CURVE_PRODUCTS || (reduces && shifts >= LEAST_CURVE_SHIFTS)
}

fn is_chacha20(signs: &[SignAt]) -> bool {
    let rotations = |bits| count(signs, Sign::Rotation(bits));
    ROTATIONS
        .iter()
        .all(|&bits| rotations(bits) >= LEAST_ROTATIONS)
}

fn is_poly1305(signs: &[SignAt]) -> bool {
    let count = |wanted| count(signs, wanted);
    let products = count(Sign::Product);
    let multiplies = PRODUCTS.contains(&products)
        && count(Sign::FiveTimes) >= LEAST_FIVE_TIMES
        && count(Sign::Carry) >= LEAST_CARRIES;
    let splits =
        products <= *PRODUCTS.end() && SPLIT.iter().all(|&bits| count(Sign::Split(bits)) > 0);
    (multiplies || splits) && count(Sign::Limb) >= LEAST_LIMBS
}

fn count(signs: &[SignAt], wanted: Sign) -> usize {
    signs.iter().filter(|(_, sign)| *sign == wanted).count()
}
