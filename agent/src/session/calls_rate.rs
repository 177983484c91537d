//! What programs on socket calls cost in a second in which they are all seen. Pure.

use std::time::{Duration, Instant};

use super::calls::Stage;

/// A rate from less time than this is not taken from a stretch that goes on.
const LEAST: Duration = Duration::from_secs(1);

/// The rate, from stretches in which all connections are followed: at the end of a window hooks are
/// in for those that are still followed, and cost less.
#[derive(Debug, Default)]
pub(super) struct CallsRate {
    /// The beginning of the stretch, and what had been spent by then.
    began: Option<(Instant, f64)>,
    rate: f64,
}

impl CallsRate {
    /// All connections are followed from now on. `spent`: seconds so far.
    pub(super) const fn begin(&mut self, now: Instant, spent: f64) {
        self.began = Some((now, spent));
    }

    /// The next stage begins.
    pub(super) fn go_over(&mut self, stage: Stage, now: Instant, spent: f64) {
        match stage {
            Stage::Open => self.begin(now, spent),
            Stage::Lead | Stage::Ending => self.end(now, spent),
            Stage::Always | Stage::Out => {}
        }
    }

    /// The rate in CPU seconds a second: that of the stretch of now if it is long enough, else of the last.
    pub(super) fn read(&mut self, now: Instant, spent: f64) -> f64 {
        if self.began.is_some_and(|(began, _)| now - began >= LEAST) {
            self.end(now, spent);
            self.begin(now, spent);
        }
        self.rate
    }

    fn end(&mut self, now: Instant, spent: f64) {
        if let Some((began, before)) = self.began.take() {
            let length = (now - began).as_secs_f64();
            self.rate = (spent - before) / length.max(f64::MIN_POSITIVE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_rate(rate: &mut CallsRate, now: Instant, spent: f64, expected: f64) {
        let rate = rate.read(now, spent);
        assert!((rate - expected).abs() < 1e-9, "{rate}");
    }

    #[test]
    fn it_is_read_while_connections_are_followed_all_the_time() {
        let began = Instant::now();
        let seconds = |count| began + Duration::from_secs(count);
        let mut rate = CallsRate::default();
        rate.begin(began, 1.0);
        assert_rate(&mut rate, seconds(2), 1.2, 0.1);
        assert_rate(&mut rate, seconds(4), 1.8, 0.3);
    }

    #[test]
    fn in_windows_it_is_that_of_the_part_in_which_all_is_followed() {
        let began = Instant::now();
        let at = |millis| began + Duration::from_millis(millis);
        let mut rate = CallsRate::default();
        rate.begin(began, 0.0);
        rate.go_over(Stage::Lead, at(1000), 0.5);
        assert_rate(&mut rate, at(1000), 0.5, 0.5);
        // Whenever it is read, and however long the end takes.
        rate.go_over(Stage::Open, at(1150), 0.53);
        assert_rate(&mut rate, at(1400), 0.6, 0.5);
        rate.go_over(Stage::Ending, at(1500), 0.60);
        rate.go_over(Stage::Out, at(2500), 0.61);
        for now in [1600, 3000, 30_000] {
            assert_rate(&mut rate, at(now), 0.61, 0.2);
        }
    }
}
