//! The ranges that are stated with estimates.

use super::*;

/// A generator of numbers that look random, always the same ones.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    /// From 0 to 1, by Knuth's MMIX.
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub(super) fn roll(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Microseconds of the handshake of a connection, of which a tenth has none. `resumed` is
    /// the share of resumed ones.
    fn connection(&mut self, resumed: f64) -> Option<u64> {
        let (tls, resumes, spread) = (self.roll(), self.roll(), self.roll());
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "cut to whole microseconds"
        )]
        match (tls < 0.9, resumes < resumed) {
            (false, _) => None,
            (_, true) => Some(100 + (50.0 * spread) as u64),
            (_, false) => Some(1000 + (800.0 * spread) as u64),
        }
    }

    /// Sessions are resumed in phases.
    pub(super) fn phase(&mut self) -> f64 {
        if self.roll() < 0.5 { 0.3 } else { 0.7 }
    }
}

/// Handshakes and their microseconds.
type Sums = (f64, f64);

/// Windows with 100 connections each, and 300 after each. `apart`: these are in a phase of their
/// own. The truth of those that were not followed, and what was booked.
fn estimate(dice: &mut Dice, apart: bool) -> (Sums, Bench) {
    let mut bench = Bench::default();
    let (mut truth, mut id) = ((0.0, 0.0), 0);
    for _ in 0..20 {
        let mut resumed = dice.phase();
        bench.go_over(Mode::Window, &[]);
        for _ in 0..100 {
            bench.open(id..id + 1, true);
            if let Some(cost) = dice.connection(resumed) {
                bench.shake(id..id + 1, cost);
            }
            id += 1;
        }
        bench.go_over(Mode::Between, &[]);
        if apart {
            resumed = dice.phase();
        }
        for _ in 0..300 {
            bench.open(id..id + 1, false);
            if let Some(cost) = dice.connection(resumed) {
                truth.0 += 1.0;
                truth.1 += Duration::from_micros(cost).as_secs_f64();
            }
            id += 1;
        }
    }
    (truth, bench)
}

/// Of 400 cases with 20 windows each, how many ranges of counts and of times hold the truth; and
/// the mean margin of times, as a share of them.
fn holds(apart: bool) -> (u32, u32, f64) {
    let mut dice = Dice(1);
    let (mut counts, mut times, mut margins) = (0, 0, 0.0);
    for _ in 0..400 {
        let (truth, bench) = estimate(&mut dice, apart);
        #[allow(clippy::cast_precision_loss, reason = "thousands")]
        let count = bench.booked.len() as f64;
        let time: u128 = bench.booked.iter().sum();
        let time = Duration::from_micros(u64::try_from(time).unwrap_or_default()).as_secs_f64();
        let margin =
            |of: fn(&Estimate) -> f64| 1.96 * bench.estimates.iter().map(of).sum::<f64>().sqrt();
        let of_time = margin(|one| one.cpu_variance);
        counts += u32::from((count - truth.0).abs() <= margin(|one| one.count_variance));
        times += u32::from((time - truth.1).abs() <= of_time);
        margins += of_time / truth.1 / 400.0;
    }
    (counts, times, margins)
}

#[test]
fn ranges_of_95_percent_hold_where_a_window_is_like_what_follows() {
    let (counts, times, margin) = holds(false);
    // A range that holds because it says nothing would be of no use.
    assert!(
        counts >= 372 && times >= 372 && margin < 0.25,
        "{counts} {times} {margin}"
    );
}

#[test]
fn ranges_of_95_percent_hold_where_phases_are_longer_than_a_window() {
    let (counts, times, margin) = holds(true);
    assert!(
        counts >= 372 && times >= 372 && margin < 0.25,
        "{counts} {times} {margin}"
    );
}
