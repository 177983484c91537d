//! How often the CPUs are sampled where the user leaves the choice.

use std::time::Duration;

/// Samples a second on each CPU. Primes, not 100: work that a timer starts is not always, nor never, seen.
const USUAL: u32 = 97;
const MORE: [u32; 3] = [199, 293, 397];
/// Raises the CPU time of a program that computes by 0.9%
/// (docs/journal/2026-11-21-cost-of-sampling.md).
const HIGHEST: u32 = 499;
/// A report of this length has samples enough.
const ENOUGH: Duration = Duration::from_secs(30);

/// Of a profile of at most that length: as many samples as one of 30 s has, as far as the rate allows.
/// `at_most`: None if the length is not known.
pub(super) fn frequency(wanted: Option<u32>, at_most: Option<Duration>) -> u32 {
    match (wanted, at_most) {
        (Some(wanted), _) => wanted,
        (None, None) => USUAL,
        (None, Some(at_most)) => of_length(at_most),
    }
}

fn of_length(at_most: Duration) -> u32 {
    let needed = f64::from(USUAL) * ENOUGH.as_secs_f64() / at_most.as_secs_f64();
    let mut rates = [USUAL].into_iter().chain(MORE);
    let enough = rates.find(|rate| f64::from(*rate) >= needed);
    enough.unwrap_or(HIGHEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_reports_are_sampled_more_often() {
        let of = |seconds| frequency(None, Some(Duration::from_secs_f64(seconds)));
        assert_eq!((of(3600.0), of(30.0), of(29.0)), (97, 97, 199));
        assert_eq!((of(15.0), of(10.0), of(8.0)), (199, 293, 397));
        assert_eq!((of(5.9), of(1.0), of(0.001)), (499, 499, 499));
        assert_eq!(frequency(None, None), 97);
    }

    #[test]
    fn what_the_user_says_stays() {
        for wanted in [0, 97, 11] {
            assert_eq!(
                frequency(Some(wanted), Some(Duration::from_secs(1))),
                wanted
            );
            assert_eq!(frequency(Some(wanted), None), wanted);
        }
    }
}
