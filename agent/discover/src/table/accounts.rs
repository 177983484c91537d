//! CPU time of services since the profile began.

use std::collections::HashMap;
use std::time::Duration;

use crate::process::CpuTime;
use crate::service::ServiceName;
use tlsprof_common::LifetimeCpu;

/// Services with an account of their own; what the rest used is under `other`.
const MAX_ACCOUNTS: usize = 1024;

/// CPU time of one process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProcessCpu {
    /// As last seen.
    last: CpuTime,
    /// The part of it that is in an account already, or was used before the
    /// profile began.
    settled: CpuTime,
}

impl ProcessCpu {
    /// Of a process that was there before the profile.
    pub(super) fn since(baseline: CpuTime) -> Self {
        Self {
            last: baseline,
            settled: baseline,
        }
    }

    /// Takes note of a new reading.
    pub(super) fn read(&mut self, now: CpuTime) {
        self.grow(now.total(), now.system);
    }

    /// As last seen.
    pub(super) fn last(&self) -> CpuTime {
        self.last
    }

    /// Takes note of what it used until an event, its end or an exec.
    pub(super) fn reached(&mut self, cpu: LifetimeCpu) {
        self.grow(cpu.total, cpu.system());
    }

    /// To so much in all. Neither part becomes less: the kernel divides a precise total by a
    /// ratio of samples that changes.
    fn grow(&mut self, total: Duration, system: Duration) {
        let unseen = total.saturating_sub(self.last.total());
        let system = system.saturating_sub(self.last.system).min(unseen);
        self.last += CpuTime {
            user: unseen.saturating_sub(system),
            system,
        };
    }

    /// What is in no account yet.
    pub(super) fn unsettled(&self) -> CpuTime {
        self.last.since(self.settled)
    }

    /// Hands that over.
    pub(super) fn settle(&mut self) -> CpuTime {
        let used = self.unsettled();
        self.settled = self.last;
        used
    }
}

/// What processes that have ended, or have gone over to another service, used.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    by_service: HashMap<ServiceName, CpuTime>,
}

impl Accounts {
    /// Adds to the account of a service.
    pub(super) fn add(&mut self, service: &ServiceName, used: CpuTime) {
        if used == CpuTime::default() {
            return;
        }
        if let Some(account) = self.by_service.get_mut(service) {
            *account += used;
        } else if self.by_service.len() < MAX_ACCOUNTS {
            self.by_service.insert(service.clone(), used);
        } else {
            *self
                .by_service
                .entry(ServiceName::new("other"))
                .or_default() += used;
        }
    }

    /// What is in the account of a service.
    pub(super) fn of(&self, service: &str) -> CpuTime {
        self.by_service.get(service).copied().unwrap_or_default()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.by_service.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(user: u64, system: u64) -> CpuTime {
        CpuTime {
            user: Duration::from_millis(user),
            system: Duration::from_millis(system),
        }
    }

    fn lifetime(total: u64, user_ticks: u64, system_ticks: u64) -> LifetimeCpu {
        LifetimeCpu {
            total: Duration::from_millis(total),
            user_ticks: Duration::from_millis(user_ticks),
            system_ticks: Duration::from_millis(system_ticks),
        }
    }

    #[test]
    fn final_total_is_divided_like_the_ticks() {
        let mut process = ProcessCpu::since(cpu(100, 100));
        process.read(cpu(300, 100));
        process.reached(lifetime(800, 600, 200));
        assert_eq!(process.settle(), cpu(500, 100));
        assert_eq!(process.settle(), cpu(0, 0));
    }

    #[test]
    fn final_total_of_an_unseen_process_is_divided_as_the_kernel_does() {
        for (ticks, expected) in [
            ((0, 0), cpu(7, 0)),
            ((4, 0), cpu(7, 0)),
            ((0, 4), cpu(0, 7)),
            ((4, 4), cpu(3, 4)),
        ] {
            let mut process = ProcessCpu::default();
            process.reached(lifetime(7, ticks.0, ticks.1));
            let used = process.settle();
            assert_eq!(used.total(), expected.total());
            assert!(used.system.abs_diff(expected.system) < Duration::from_millis(1));
        }
    }

    #[test]
    fn time_never_runs_backwards() {
        let mut process = ProcessCpu::default();
        process.read(cpu(50, 50));
        process.read(cpu(40, 60));
        process.reached(lifetime(1, 1, 0));
        assert_eq!(process.settle(), cpu(50, 50));
        process.reached(lifetime(120, 100, 20));
        assert_eq!(process.settle(), cpu(20, 0));
    }

    #[test]
    fn accounts_beyond_the_bound_go_to_other() {
        let mut accounts = Accounts::default();
        for number in 0..MAX_ACCOUNTS + 5 {
            accounts.add(&ServiceName::new(&format!("service{number}")), cpu(1, 0));
        }
        assert_eq!(accounts.of("other"), cpu(5, 0));
        assert_eq!(accounts.of("service1028"), cpu(0, 0));
        assert_eq!(accounts.of("service0"), cpu(1, 0));
    }
}
