//! What programs cost that are in only while socket calls are seen. Pure.

use std::time::{Duration, Instant};

use super::calls::Stage;
use super::governor::{CALLS_WINDOW, InWindows};

/// A rate from less time than this is not taken from a stretch that goes on.
const LEAST: Duration = Duration::from_secs(1);

/// CPU seconds a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct InWindowsRate {
    /// Were they in all the time.
    pub(super) always: InWindows,
    /// With one window in each second.
    pub(super) windows: InWindows,
    /// Whether it was measured since it was last read; in windows, by one that is over.
    pub(super) is_new: bool,
}

/// Measures it: all the time by stretches in which all connections are followed, as at the end of a window hooks are
/// in for those that are still followed, and cost less. A window by all that it cost, with its end.
#[derive(Debug, Default)]
pub(super) struct CallsRate {
    /// The beginning of the stretch, and what had been spent by then.
    began: Option<(Instant, InWindows)>,
    rate: InWindows,
    is_new: bool,
    /// What had been spent when the window of now began.
    before_window: Option<InWindows>,
    /// The last window, where there are some.
    window: Option<InWindows>,
}

impl CallsRate {
    /// All connections are followed from now on. `spent`: CPU seconds so far.
    pub(super) const fn begin(&mut self, now: Instant, spent: InWindows) {
        self.began = Some((now, spent));
    }

    /// The next stage begins.
    pub(super) fn go_over(&mut self, stage: Stage, now: Instant, spent: InWindows) {
        match stage {
            Stage::Lead => {
                self.end(now, spent);
                self.before_window = Some(spent);
            }
            Stage::Open => self.begin(now, spent),
            Stage::Ending => self.end(now, spent),
            Stage::Out => {
                let before = self.before_window.take();
                self.window = before.map(|before| spent.since(before));
                self.is_new = true;
            }
            Stage::Always => (self.before_window, self.window) = (None, None),
        }
    }

    /// The rate: that of the stretch of now if it is long enough, else of the last.
    pub(super) fn read(&mut self, now: Instant, spent: InWindows) -> InWindowsRate {
        if self.began.is_some_and(|(began, _)| now - began >= LEAST) {
            self.end(now, spent);
            self.begin(now, spent);
            self.is_new = true;
        }
        let window = || self.rate.times(CALLS_WINDOW.as_secs_f64());
        InWindowsRate {
            always: self.rate,
            windows: self.window.unwrap_or_else(window),
            is_new: std::mem::take(&mut self.is_new),
        }
    }

    fn end(&mut self, now: Instant, spent: InWindows) {
        if let Some((began, before)) = self.began.take() {
            let length = (now - began).as_secs_f64();
            self.rate = spent
                .since(before)
                .times(1.0 / length.max(f64::MIN_POSITIVE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn spent(calls: f64) -> InWindows {
        InWindows {
            calls,
            switches: 0.0,
        }
    }

    fn assert_rate(rate: InWindowsRate, always: f64, windows: f64) {
        let [all, some] = [rate.always.calls - always, rate.windows.calls - windows];
        assert!(all.abs() < 1e-9 && some.abs() < 1e-9, "{rate:?}");
    }

    #[test]
    fn it_is_read_while_connections_are_followed_all_the_time() {
        let began = Instant::now();
        let seconds = |count| began + Duration::from_secs(count);
        let mut rate = CallsRate::default();
        rate.begin(began, spent(1.0));
        let read = rate.read(seconds(2), spent(1.2));
        assert_rate(read, 0.1, 0.05);
        assert!(read.is_new);
        assert_rate(rate.read(seconds(4), spent(1.8)), 0.3, 0.15);
    }

    #[test]
    fn in_windows_it_is_that_of_the_part_in_which_all_is_followed() {
        let began = Instant::now();
        let at = |millis| began + Duration::from_millis(millis);
        let mut rate = CallsRate::default();
        rate.begin(began, spent(0.0));
        let read = |rate: &mut CallsRate, millis, calls, always, windows| {
            let read = rate.read(at(millis), spent(calls));
            assert_rate(read, always, windows);
            read.is_new
        };
        rate.go_over(Stage::Lead, at(1000), spent(0.5));
        assert!(!read(&mut rate, 1000, 0.5, 0.5, 0.25));
        rate.go_over(Stage::Open, at(1150), spent(0.53));
        assert!(!read(&mut rate, 1400, 0.6, 0.5, 0.25));
        // However long the end takes.
        rate.go_over(Stage::Ending, at(1500), spent(0.60));
        assert!(!read(&mut rate, 1600, 0.6, 0.2, 0.1));
        // The window cost what was spent from its beginning on to when the hooks were out.
        rate.go_over(Stage::Out, at(2500), spent(0.61));
        assert!(read(&mut rate, 3000, 0.61, 0.2, 0.11));
        assert!(!read(&mut rate, 30_000, 0.61, 0.2, 0.11));
    }

    #[test]
    fn a_window_of_before_says_nothing_of_one_under_another_load() {
        let began = Instant::now();
        let at = |millis| began + Duration::from_millis(millis);
        let mut rate = CallsRate::default();
        for (stage, millis, calls) in [
            (Stage::Lead, 0, 0.0),
            (Stage::Open, 150, 0.1),
            (Stage::Ending, 500, 0.3),
            (Stage::Out, 1000, 0.4),
            (Stage::Lead, 2000, 0.4),
            (Stage::Open, 2150, 0.4),
            (Stage::Always, 2151, 0.4),
        ] {
            rate.go_over(stage, at(millis), spent(calls));
        }
        assert_rate(rate.read(at(4150), spent(0.6)), 0.1, 0.05);
    }
}
