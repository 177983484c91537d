//! CPU time that the hypervisor gave to others while this host wanted to run.
//!
//! The clocks of handshakes run on meanwhile, as the guest does not see it happen. The
//! kernel learns it afterwards from the hypervisor, where that tells, and keeps it out of
//! utime and stime (`steal_account_process_time`, kernel/sched/cputime.c).

use procfs::{CpuTime, CurrentSI as _, KernelStats};

/// Time of all CPUs since the start of the host, in ticks of 10 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostTime {
    used: u64,
    stolen: u64,
}

impl HostTime {
    /// What /proc/stat tells just now; None if it cannot be read.
    pub fn read() -> Option<Self> {
        KernelStats::current()
            .ok()
            .map(|stat| Self::of(&stat.total))
    }

    fn of(all: &CpuTime) -> Self {
        // `user` and `nice` contain the time of guests of this host.
        let used = [all.user, all.nice, all.system]
            .into_iter()
            .chain([all.irq, all.softirq].into_iter().flatten())
            .fold(0, u64::saturating_add);
        Self {
            used,
            stolen: all.steal.unwrap_or(0),
        }
    }

    /// Which part of the CPU time that this host asked for since `before` it did not get:
    /// 0 to 1; 0 where nothing was asked for, or the hypervisor does not tell.
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

    fn told(cpu: &str) -> HostTime {
        let text = format!("cpu  {cpu}\nctxt 1\nbtime 2\nprocesses 3\n");
        let info = procfs::LocalSystemInfo;
        let stat = <KernelStats as procfs::FromBufReadSI>::from_buf_read(text.as_bytes(), &info);
        HostTime::of(&stat.unwrap().total)
    }

    #[test]
    fn idle_time_was_not_asked_for() {
        //                user nice system idle iowait irq softirq steal guest guest_nice
        let before = told("100 10 50 9000 30 1 4 5 0 0");
        let after = told("160 20 70 99000 90 2 13 105 0 0");
        assert!((after.stolen_since(before) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn nothing_wanted_is_nothing_stolen() {
        let same = told("100 10 50 9000 30 1 4 5 0 0");
        assert_eq!(same.stolen_since(same), 0.0);
        assert_eq!(told("1 0 0 0 0 0 0 0 0 0").stolen_since(same), 0.0);
    }

    #[test]
    fn kernels_that_do_not_know_of_it_have_none() {
        assert_eq!(told("100 10 50 9000").stolen, 0);
    }

    #[test]
    fn this_kernel_is_read() {
        assert!(HostTime::read().unwrap().used > 0);
    }
}
