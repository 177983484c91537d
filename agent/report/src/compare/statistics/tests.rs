#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::*;

const NOISE: Noise = Noise {
    spread: 0.05,
    weight: 10.0,
};

/// A generator of random numbers that is the same everywhere (xorshift64*, Vigna 2016).
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn binomial(&mut self, all: u32, share: f64) -> f64 {
        (0..all).filter(|_| self.uniform() < share).count() as f64
    }

    /// A run of a server whose request costs `cost`: one figure that is exact but for the
    /// spread between runs, and one by 400 samples.
    fn run(&mut self, cost: f64, spread: f64, share: f64) -> [Estimate; 2] {
        let total = cost * (spread * self.normal()).exp();
        let hits = self.binomial(400, share);
        let each = total * (hits + 0.5) / 400.0;
        let variance = (1.0 - hits / 400.0) / (hits + 0.5);
        [
            Estimate::ratio(total, total, 0.0).unwrap(),
            Estimate::ratio(each, each, variance).unwrap(),
        ]
    }
}

fn judged(before: &[Estimate], after: &[Estimate], confidence: f64) -> Contrast {
    let spread = Spread::of([before, after].into_iter(), NOISE);
    let level = |runs| Level::of(runs, Scale::Ratio, spread).unwrap();
    Contrast::between(&level(before), &level(after), confidence)
}

/// How many of `trials` comparisons of 18 figures have a verdict on any of them, and how
/// many on the first.
fn verdicts(trials: u32, runs: usize, spread: f64, factor: f64) -> (f64, f64) {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let confidence = 1.0 - 0.05 / 18.0;
    let (mut any, mut first) = (0.0, 0.0);
    for _ in 0..trials {
        let mut real = Vec::new();
        for _ in 0..9 {
            let mut group = |cost| -> Vec<[Estimate; 2]> {
                (0..runs).map(|_| random.run(cost, spread, 0.3)).collect()
            };
            let (before, after) = (group(1.0), group(factor));
            for of in [0, 1] {
                let pick =
                    |runs: &[[Estimate; 2]]| runs.iter().map(|run| run[of]).collect::<Vec<_>>();
                real.push(judged(&pick(&before), &pick(&after), confidence).is_real());
            }
        }
        any += f64::from(u8::from(real.contains(&true)));
        first += f64::from(u8::from(real[0]));
    }
    (any / f64::from(trials), first / f64::from(trials))
}

#[test]
fn equal_servers_are_seldom_told_apart() {
    for runs in [1, 2, 5] {
        let (any, _) = verdicts(100, runs, NOISE.spread, 1.0);
        assert!(
            any <= 0.05,
            "{runs} runs: {any} of the comparisons have a verdict"
        );
    }
}

#[test]
fn repeats_correct_an_assumption_that_is_too_good() {
    let (alone, _) = verdicts(40, 1, 3.0 * NOISE.spread, 1.0);
    let (repeated, _) = verdicts(100, 5, 3.0 * NOISE.spread, 1.0);
    assert!(alone > 0.2, "single runs cannot know it: {alone}");
    assert!(repeated <= 0.1, "{repeated}");
}

#[test]
fn a_fifth_less_is_found_with_repeats_and_a_third_without() {
    let (_, repeated) = verdicts(40, 5, NOISE.spread, 0.8);
    assert!(repeated > 0.9, "{repeated}");
    let (_, quiet) = verdicts(40, 3, 0.02, 0.8);
    assert!(quiet > 0.9, "{quiet}");
    let (_, single) = verdicts(40, 1, NOISE.spread, 0.62);
    assert!(single > 0.9, "{single}");
}

#[test]
fn a_run_against_itself_has_not_changed() {
    let run = [Estimate::ratio(1e-4, 1e-4, 0.0).unwrap()];
    for noise in [0.0, 0.05] {
        let assumed = Noise {
            spread: noise,
            ..NOISE
        };
        let spread = Spread::of([run.as_slice(), &run].into_iter(), assumed);
        let level = Level::of(&run, Scale::Ratio, spread).unwrap();
        let contrast = Contrast::between(&level, &level, 0.95);
        assert!(!contrast.is_real());
        assert_eq!(contrast.change, 0.0);
    }
}

#[test]
fn limits_are_those_of_the_textbook() {
    // Counting alone: normal. Five hundred of a thousand, one of each kind added.
    let share = [Estimate::share(500.0, 1000.0).unwrap()];
    let none = Noise {
        spread: 0.0,
        ..NOISE
    };
    let spread = Spread::of([share.as_slice()].into_iter(), none);
    let (low, high) = Level::of(&share, Scale::Share, spread)
        .unwrap()
        .limits(0.95);
    let half = 1.959_964 * (0.25_f64 / 1002.0).sqrt();
    assert!((low - (0.5 - half)).abs() < 1e-5 && (high - (0.5 + half)).abs() < 1e-5);
    // The spread alone: Student's t with 10 degrees of freedom, 2.228 standard errors.
    let exact = [Estimate::ratio(1.0, 1.0, 0.0).unwrap()];
    let spread = Spread::of([exact.as_slice()].into_iter(), NOISE);
    let (low, high) = Level::of(&exact, Scale::Ratio, spread)
        .unwrap()
        .limits(0.95);
    assert!((high.ln() - 2.228_139 * 0.05).abs() < 1e-6);
    assert!((low.ln() + 2.228_139 * 0.05).abs() < 1e-6);
}

#[test]
fn repeats_are_averaged_with_the_assumption() {
    // Three runs that spread by 1 around 0 on the logarithm's scale.
    let runs = [-1.0_f64, 0.0, 1.0].map(|v| Estimate::ratio(v.exp(), v.exp(), 0.0).unwrap());
    let spread = Spread::of([runs.as_slice()].into_iter(), NOISE);
    assert!(
        (spread.variance - 1.0).abs() < 1e-12,
        "not less than what is seen"
    );
    assert!((spread.error - 2.0 / FEWEST).abs() < 1e-12);
    // Less is seen than assumed: the mean of both, by degrees of freedom.
    let runs = [-0.01_f64, 0.0, 0.01].map(|v| Estimate::ratio(v.exp(), v.exp(), 0.0).unwrap());
    let spread = Spread::of([runs.as_slice()].into_iter(), NOISE);
    assert!((spread.variance - (10.0 * 0.0025 + 0.0002) / 12.0).abs() < 1e-12);
}

#[test]
fn counting_errors_do_not_count_as_spread() {
    let runs = [0.0_f64, 0.2].map(|v| Estimate::ratio(v.exp(), v.exp(), 0.02).unwrap());
    let spread = Spread::of([runs.as_slice()].into_iter(), NOISE);
    // The two differ by just what counting explains: one degree more for nothing.
    assert!(
        (spread.variance - 10.0 * 0.0025 / 11.0).abs() < 1e-12,
        "{spread:?}"
    );
}

#[test]
fn shares_at_their_ends_are_not_certain() {
    let none = [Estimate::share(0.0, 100.0).unwrap()];
    let spread = Spread::of([none.as_slice()].into_iter(), NOISE);
    let (low, high) = Level::of(&none, Scale::Share, spread).unwrap().limits(0.95);
    assert_eq!(low, 0.0);
    assert!(high > 0.01, "{high}");
}

#[test]
fn nothing_is_made_of_impossible_figures() {
    for bad in [f64::NAN, f64::INFINITY, 0.0, -1.0, f64::MIN_POSITIVE / 4.0] {
        assert_eq!(Estimate::ratio(1.0, bad, 0.0), None);
    }
    assert_eq!(Estimate::ratio(1.0, 1.0, f64::NAN), None);
    assert_eq!(Estimate::share(f64::NAN, 10.0), None);
    assert_eq!(Estimate::share(-1.0, 10.0), None);
    assert_eq!(Estimate::share(0.0, 0.0), None);
    assert_eq!(Estimate::share(20.0, 10.0).unwrap().shown, 1.0);
}
