//! How the CPU time of the whole host was spent, by /proc/stat.
//!
//! Steal is what the hypervisor gave to others while this host wanted to run. The clocks of
//! handshakes run on meanwhile, as the guest does not see it happen. The kernel learns it
//! afterwards from the hypervisor, where that reports it, and keeps it out of what its ticks
//! count (`steal_account_process_time`, kernel/sched/cputime.c).

use std::fs;
use std::time::Duration;

const STAT: &str = "/proc/stat";
/// `USER_HZ` is 100 on all architectures that tlsprof runs on.
const TICK_MS: u64 = 10;

/// Time of all CPUs since the start of the host, in ticks of 10 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTime {
    /// Not idle; `interrupts` are in it, what was stolen is not.
    pub(super) used: u64,
    pub(super) interrupts: u64,
    stolen: u64,
}

impl HostTime {
    /// What /proc/stat shows now; None if it cannot be read.
    pub fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string(STAT).ok()?)
    }

    /// The line `cpu`: user, nice, system, idle, iowait, irq, softirq, steal. The first two
    /// contain the time of guests of this host.
    pub(super) fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let mut ticks = line.split_ascii_whitespace().map(|word| word.parse().ok());
        let mut next = || ticks.next().flatten();
        let (user, nice, system): (u64, u64, u64) = (next()?, next()?, next()?);
        let (_idle, _iowait, interrupts, softirqs): (u64, u64, u64, u64) =
            (next()?, next()?, next()?, next()?);
        let used = [user, nice, system, softirqs]
            .into_iter()
            .fold(interrupts, u64::saturating_add);
        Some(Self {
            used,
            interrupts,
            stolen: next().unwrap_or(0),
        })
    }

    /// CPU time that all processes used and interrupts took since `before`, to a tick for each
    /// of its kinds.
    pub const fn used_since(self, before: Self) -> Duration {
        Duration::from_millis(
            self.used
                .saturating_sub(before.used)
                .saturating_mul(TICK_MS),
        )
    }

    /// Which part of the CPU time that this host asked for since `before` it did not get:
    /// 0 to 1; 0 where nothing was asked for, or the hypervisor does not report it.
    #[allow(clippy::cast_precision_loss, reason = "a ratio")]
    pub fn stolen_since(self, before: Self) -> f64 {
        let stolen = self.stolen.saturating_sub(before.stolen);
        let wanted = self.used.saturating_sub(before.used).saturating_add(stolen);
        match wanted {
            0 => 0.0,
            wanted => stolen as f64 / wanted as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop")]

    use super::*;

    fn stat(cpu: &str) -> HostTime {
        HostTime::parse(&format!("cpu  {cpu}\nctxt 1\n")).unwrap()
    }

    #[test]
    fn idle_time_was_not_asked_for() {
        //                user nice system idle iowait irq softirq steal guest guest_nice
        let before = stat("100 10 50 9000 30 1 4 5 0 0");
        let after = stat("160 20 70 99000 90 2 13 105 0 0");
        assert!((after.stolen_since(before) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn nothing_wanted_is_nothing_stolen() {
        let same = stat("100 10 50 9000 30 1 4 5 0 0");
        assert_eq!(same.stolen_since(same), 0.0);
        assert_eq!(stat("1 0 0 0 0 0 0 0 0 0").stolen_since(same), 0.0);
    }

    #[test]
    fn kernels_that_do_not_know_of_it_have_none() {
        assert_eq!(stat("100 10 50 9000 30 1 4").stolen, 0);
    }

    #[test]
    fn this_kernel_is_read() {
        assert!(HostTime::read().unwrap().used > 0);
    }
}
