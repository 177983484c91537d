//! Values over time in one row.

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The newest `width` values, the last one at the right end; `most` is a full column, zero
/// none at all.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 to 8, checked to be finite"
)]
pub(super) fn spark(values: &[f64], width: usize, most: f64) -> String {
    let skip = values.len().saturating_sub(width);
    let shown = values.iter().skip(skip).map(|value| {
        let level = (value / most * LEVELS.len() as f64).ceil();
        if *value <= 0.0 || !level.is_finite() {
            return ' ';
        }
        let at = (level as usize).clamp(1, LEVELS.len()) - 1;
        LEVELS.get(at).copied().unwrap_or(' ')
    });
    let text: String = shown.collect();
    format!("{text:>width$}")
}

/// The greatest of all.
pub(super) fn greatest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_at_the_right() {
        assert_eq!(spark(&[0.0, 1.0, 4.0, 8.0], 6, 8.0), "   ▁▄█");
        assert_eq!(spark(&[8.0, 4.0, 0.01, 0.0], 3, 8.0), "▄▁ ");
        assert_eq!(spark(&[0.0, 0.0], 2, 0.0), "  ");
        assert_eq!(spark(&[f64::NAN, 9.0], 2, 8.0), " █");
    }
}
