//! Whether the kernel counts the time of interrupts and softirqs to the thread that
//! they hit.
//!
//! With CONFIG_IRQ_TIME_ACCOUNTING it measures that time and keeps it out of utime,
//! stime and the scheduler's runtime (`irqtime_account_irq`, kernel/sched/cputime.c).
//! The option alone does not decide: a clock that is not stable, or the parameter
//! `tsc=noirqtime`, switches it off. But what it measured is in the column `irq` of
//! /proc/stat; without it that column stays zero, since the tick that fills the
//! others never hits another interrupt.

use procfs::ConfigSetting;
use tlsprof_common::InterruptTime;

use super::host_time::HostTime;

const OPTION: &str = "CONFIG_IRQ_TIME_ACCOUNTING";

/// Busy time of all CPUs, in ticks of 10 ms, in which interrupts that are measured
/// sum up to 10 ms: each busy CPU has at least 100 ticks a second, of a microsecond
/// or more. Here, 10 minutes.
const TELLING: u64 = 60_000;

/// Asks the running kernel.
pub fn read() -> InterruptTime {
    let config = procfs::kernel_config().ok();
    let option = config.map(|config| {
        let setting = config.get(OPTION);
        matches!(setting, Some(ConfigSetting::Yes))
    });
    decide(HostTime::read(), option)
}

/// From the times that were observed, and whether the kernel has the option.
fn decide(times: Option<HostTime>, option: Option<bool>) -> InterruptTime {
    match (times, option) {
        (Some(times), _) if times.interrupts > 0 => InterruptTime::Apart,
        (_, Some(false)) => InterruptTime::InThread,
        (Some(times), _) if times.used >= TELLING => InterruptTime::InThread,
        _ => InterruptTime::Unknown,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop")]

    use super::*;

    fn found(stat: &str, option: Option<bool>) -> InterruptTime {
        decide(HostTime::parse(stat), option)
    }

    #[test]
    fn measured_interrupts_are_apart_whatever_the_configuration_says() {
        let stat = "cpu  3187 0 9021 128 0 1 12 0 0 0\ncpu0 3187 0 9021 128 0 1 12 0 0 0\n";
        for option in [None, Some(false), Some(true)] {
            assert_eq!(found(stat, option), InterruptTime::Apart);
        }
    }

    #[test]
    fn none_in_a_long_time_means_that_they_are_not_measured() {
        // The machine that this was developed on, after three hours: 6.18, option off.
        let stat = "cpu  888729 421864 231841 981333 8144 0 22142 1877 0 0\n";
        for option in [None, Some(false), Some(true)] {
            assert_eq!(found(stat, option), InterruptTime::InThread);
        }
    }

    #[test]
    fn soon_after_the_start_only_a_missing_option_tells() {
        let stat = "cpu  196 0 418 99000000 0 0 0 0 0 0\n";
        assert_eq!(found(stat, Some(false)), InterruptTime::InThread);
        assert_eq!(found(stat, Some(true)), InterruptTime::Unknown);
        assert_eq!(found(stat, None), InterruptTime::Unknown);
    }

    #[test]
    fn other_text_tells_nothing() {
        let huge = format!("cpu {0} {0} {0} 0 0 x 0", u64::MAX);
        for stat in ["", "cpu", "cpu  1 2", "cpu0 1 2 3 4 5 6 7", "cpu a", &huge] {
            assert_eq!(found(stat, None), InterruptTime::Unknown, "{stat:?}");
        }
    }

    #[test]
    fn this_kernel_is_read() {
        assert!(HostTime::read().is_some());
        let _ = read();
    }
}
