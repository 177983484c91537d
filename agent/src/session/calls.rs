//! When socket calls are seen: all the time, or in windows. Pure.
//!
//! In a window new connections are followed. At its end those that open are no longer
//! followed, and as soon as the handshakes under way are over, the hooks come out. Samples
//! of the CPUs are taken while all handshakes that may be under way are followed: from a
//! little after the beginning of the window to its end.

use std::time::Duration;

use super::governor::Duty;

/// Handshakes of connections that were open before the window take no longer, mostly.
const LEAD: Duration = Duration::from_millis(150);
/// Handshakes that take longer after the end of the window are cut off.
const TAIL: Duration = Duration::from_secs(1);

/// What socket calls are at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// They are seen all the time.
    Always,
    /// A window has begun; samples would miss handshakes that began before it.
    Lead,
    /// All is measured.
    Open,
    /// What was followed comes to its end.
    Ending,
    /// The hooks are out.
    Out,
}

impl Stage {
    /// Whether samples are taken.
    pub(super) fn samples(self) -> bool {
        matches!(self, Self::Always | Self::Open)
    }
}

/// The windows in which socket calls are seen. Times are of the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallWindows {
    duty: Duty,
    stage: Stage,
    /// When the last window began.
    window_began: Duration,
    /// When the stage began.
    since: Duration,
}

impl CallWindows {
    /// Hooks are in from now on.
    pub(super) const fn new(now: Duration) -> Self {
        Self {
            duty: Duty::ALWAYS,
            stage: Stage::Always,
            window_began: now,
            since: now,
        }
    }

    pub(super) const fn set_duty(&mut self, duty: Duty) {
        self.duty = duty;
    }

    /// Share of the time in which connections that open are followed.
    pub(super) fn ratio(&self) -> f64 {
        self.duty.ratio()
    }

    /// Whether samples have been taken all the time since then.
    pub(super) fn sampled_since(&self, then: Duration) -> bool {
        self.stage == Stage::Always && self.since <= then
    }

    /// How much of the time a sample stands for, where it stands for one part of it with
    /// samples all the time.
    pub(super) fn time_for_a_sample(&self) -> f64 {
        if self.duty.is_always() {
            return 1.0;
        }
        let sampled = self.duty.window.saturating_sub(LEAD);
        self.duty.period.as_secs_f64() / sampled.as_secs_f64()
    }

    /// How long to wait for other things, at most `timeout`: a stage that ends late would make
    /// samples stand for another time than they do.
    pub(super) fn patience(&self, timeout: Duration, now: Duration) -> Duration {
        let end = match self.stage {
            Stage::Always => return timeout,
            Stage::Lead => self.since + LEAD,
            Stage::Open => self.window_began + self.duty.window,
            Stage::Ending => self.since + TAIL,
            Stage::Out => self.window_began + self.duty.period,
        };
        timeout.min(end.saturating_sub(now))
    }

    /// Goes on to the next stage where it is time for it. `busy` tells whether handshakes that
    /// are followed are under way, or about to begin.
    pub(super) fn turn(&mut self, now: Duration, busy: impl FnOnce() -> bool) -> Option<Stage> {
        let next = self.next(now, busy)?;
        if next == Stage::Lead {
            self.window_began = now;
        }
        (self.stage, self.since) = (next, now);
        Some(next)
    }

    fn next(&self, now: Duration, busy: impl FnOnce() -> bool) -> Option<Stage> {
        let in_stage = now.saturating_sub(self.since);
        let in_window = now.saturating_sub(self.window_began);
        match self.stage {
            Stage::Always if !self.duty.is_always() => Some(Stage::Lead),
            Stage::Lead if in_stage >= LEAD => Some(Stage::Open),
            Stage::Open if self.duty.is_always() => Some(Stage::Always),
            Stage::Open if in_window >= self.duty.window => Some(Stage::Ending),
            Stage::Ending if in_stage >= TAIL || !busy() => Some(Stage::Out),
            Stage::Out if in_window >= self.duty.period || self.duty.is_always() => {
                Some(Stage::Lead)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUTY: Duty = Duty {
        window: Duration::from_millis(500),
        period: Duration::from_secs(2),
    };

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn in_windows() -> CallWindows {
        let mut windows = CallWindows::new(ms(0));
        windows.set_duty(DUTY);
        windows
    }

    #[test]
    fn all_the_time_is_the_default() {
        let mut windows = CallWindows::new(ms(0));
        assert_eq!(windows.turn(ms(100_000), || true), None);
        assert_eq!(windows.patience(ms(100), ms(1000)), ms(100));
    }

    #[test]
    fn a_window_follows_what_opens_in_it_to_its_end() {
        let mut windows = in_windows();
        assert_eq!(windows.turn(ms(1000), || false), Some(Stage::Lead));
        assert_eq!(windows.turn(ms(1100), || false), None);
        assert_eq!(windows.turn(ms(1150), || false), Some(Stage::Open));
        assert_eq!(windows.turn(ms(1490), || false), None);
        assert_eq!(windows.turn(ms(1500), || false), Some(Stage::Ending));
        assert_eq!(windows.turn(ms(1510), || true), None);
        assert_eq!(windows.turn(ms(1520), || false), Some(Stage::Out));
        assert_eq!(windows.turn(ms(2999), || false), None);
        assert_eq!(windows.turn(ms(3000), || false), Some(Stage::Lead));
    }

    #[test]
    fn handshakes_that_do_not_end_are_cut_off() {
        let mut windows = in_windows();
        for now in [0, 150, 500] {
            windows.turn(ms(now), || true);
        }
        assert_eq!(windows.turn(ms(1499), || true), None);
        assert_eq!(windows.turn(ms(1500), || true), Some(Stage::Out));
    }

    #[test]
    fn samples_show_who_ran_only_while_they_are_taken_all_the_time() {
        let mut windows = CallWindows::new(ms(100));
        assert!(windows.sampled_since(ms(100)) && !windows.sampled_since(ms(99)));
        windows.set_duty(DUTY);
        for now in [1000, 1150] {
            windows.turn(ms(now), || false);
            assert!(!windows.sampled_since(ms(now)));
        }
        windows.set_duty(Duty::ALWAYS);
        assert_eq!(windows.turn(ms(2000), || false), Some(Stage::Always));
        assert!(!windows.sampled_since(ms(1500)) && windows.sampled_since(ms(2000)));
    }

    #[test]
    fn samples_stand_for_all_of_the_time() {
        for period in [2, 8, 32].map(Duration::from_secs) {
            let mut windows = CallWindows::new(ms(0));
            windows.set_duty(Duty { period, ..DUTY });
            let (mut now, mut began, mut sampled) = (ms(0), ms(0), 0.0);
            while now < 100 * period {
                // A turn waits 100 ms at most, and works for some.
                now += windows.patience(ms(100), now) + ms(3);
                match windows.turn(now, || false) {
                    Some(Stage::Open) => began = now,
                    Some(Stage::Ending) => {
                        sampled += (now - began).as_secs_f64() * windows.time_for_a_sample();
                    }
                    _ => {}
                }
            }
            let ratio = sampled / now.as_secs_f64();
            assert!((0.97..1.03).contains(&ratio), "{ratio}");
        }
    }

    #[test]
    fn all_of_the_time_a_sample_stands_for_its_own() {
        let times = CallWindows::new(ms(0)).time_for_a_sample();
        assert!((times - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn the_way_back_leads_through_a_window() {
        let mut windows = in_windows();
        for now in [0, 150, 500, 501] {
            windows.turn(ms(now), || false);
        }
        windows.set_duty(Duty::ALWAYS);
        assert_eq!(windows.turn(ms(1002), || false), Some(Stage::Lead));
        assert_eq!(windows.turn(ms(1152), || false), Some(Stage::Open));
        assert_eq!(windows.turn(ms(1153), || false), Some(Stage::Always));
    }
}
