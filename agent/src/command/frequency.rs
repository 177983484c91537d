//! How often the CPUs are sampled where the user leaves the choice.

use std::time::Duration;

use super::purpose::Purpose;
use crate::session::Rates;

/// Samples a second on each CPU. Primes, not 100: work that a timer starts is not always, nor never, seen.
const USUAL: u32 = 97;
const MORE: [u32; 3] = [199, 293, 397];
/// Raises the CPU time of a program that computes by 0.9%
/// (docs/journal/2026-11-21-cost-of-sampling.md).
const HIGHEST: u32 = 499;
/// A report of this length has samples enough.
const ENOUGH: Duration = Duration::from_secs(30);

/// Of a report of unknown length: whenever it ends after the first of these times, it is as precise as one of
/// [`ENOUGH`].
const FALLING: [(Duration, u32); 3] = [
    (Duration::from_secs(6), 293),
    (Duration::from_secs(8), 199),
    (Duration::from_secs(15), USUAL),
];

/// A report has as many samples as one of 30 s, as far as the rate allows. An agent that samples in windows, a
/// sixth of the time at most, takes no more than one that samples all the time.
pub(super) fn rates(wanted: Option<u32>, purpose: Purpose) -> Rates {
    match (wanted, purpose) {
        (Some(wanted), _) => Rates::constant(wanted),
        (None, Purpose::Watch) => Rates::constant(USUAL).in_windows(HIGHEST),
        (None, Purpose::Report(Some(length))) => Rates::constant(of_length(length)),
        (None, Purpose::Report(None)) => Rates::falling(HIGHEST, &FALLING),
    }
}

fn of_length(length: Duration) -> u32 {
    let needed = f64::from(USUAL) * ENOUGH.as_secs_f64() / length.as_secs_f64();
    let mut rates = [USUAL].into_iter().chain(MORE);
    let enough = rates.find(|rate| f64::from(*rate) >= needed);
    enough.unwrap_or(HIGHEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_reports_are_sampled_more_often() {
        let of = |seconds| {
            let length = Duration::from_secs_f64(seconds);
            rates(None, Purpose::Report(Some(length))).first()
        };
        assert_eq!((of(3600.0), of(30.0), of(29.0)), (97, 97, 199));
        assert_eq!((of(15.0), of(10.0), of(8.0)), (199, 293, 397));
        assert_eq!((of(5.9), of(1.0), of(0.001)), (499, 499, 499));
        assert_eq!(rates(None, Purpose::Watch).first(), 97);
    }

    /// How precise a share is depends on the squares of what each sample stands for.
    #[test]
    fn whenever_a_report_ends_it_has_the_precision_of_30_seconds() {
        let falling = rates(None, Purpose::Report(None));
        let mut squares = 0.0;
        for tenths in 0..1200 {
            let elapsed = Duration::from_millis(100 * tenths);
            squares += 0.1 / f64::from(falling.at(elapsed));
            let seconds = elapsed.as_secs_f64() + 0.1;
            if elapsed >= FALLING[0].0 {
                assert!(seconds * seconds / squares > 97.0 * 30.0, "{seconds}");
            }
        }
        assert_eq!(falling.first(), 499);
        assert_eq!(falling.at(Duration::from_secs(3600)), 97);
    }

    #[test]
    fn what_the_user_says_stays() {
        let second = Duration::from_secs(1);
        for wanted in [0, 97, 11] {
            for length in [Some(second), None] {
                let of = rates(Some(wanted), Purpose::Report(length));
                assert_eq!((of.first(), of.at(60 * second)), (wanted, wanted));
            }
        }
    }
}
