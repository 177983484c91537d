//! Searches sorted tables of an image.

use super::ElfError;

/// The first of `count` indices for which `reached` holds, by halving.
pub(super) fn first_from(
    count: u64,
    reached: impl Fn(u64) -> Result<bool, ElfError>,
) -> Result<u64, ElfError> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if reached(middle)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}
