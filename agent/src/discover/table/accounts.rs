//! CPU time of services since the profile began.

use std::collections::HashMap;
use std::time::Duration;

use crate::discover::process::CpuTime;
use crate::discover::service::ServiceName;

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
        // Never less than before: the kernel divides a precise total by a ratio
        // of samples that changes.
        self.last.user = self.last.user.max(now.user);
        self.last.system = self.last.system.max(now.system);
    }

    /// Takes note of the final total. How it divides into user and system is not
    /// known any more: what was used since the last reading is divided as all
    /// before it was, or is all user if nothing was seen before.
    pub(super) fn ended(&mut self, total: Duration) {
        let seen = self.last.total();
        let unseen = total.saturating_sub(seen);
        let user = if seen.is_zero() {
            unseen
        } else {
            unseen
                .mul_f64(self.last.user.as_secs_f64() / seen.as_secs_f64())
                .min(unseen)
        };
        self.last += CpuTime {
            user,
            system: unseen.saturating_sub(user),
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

    #[test]
    fn final_total_is_divided_as_seen_before() {
        let mut process = ProcessCpu::since(cpu(100, 100));
        process.read(cpu(300, 100));
        process.ended(Duration::from_millis(800));
        assert_eq!(process.settle(), cpu(500, 100));
        assert_eq!(process.settle(), cpu(0, 0));
    }

    #[test]
    fn final_total_of_an_unseen_process_is_user_time() {
        let mut process = ProcessCpu::default();
        process.ended(Duration::from_millis(7));
        assert_eq!(process.settle(), cpu(7, 0));
    }

    #[test]
    fn time_never_runs_backwards() {
        let mut process = ProcessCpu::default();
        process.read(cpu(50, 50));
        process.read(cpu(40, 60));
        process.ended(Duration::from_millis(1));
        assert_eq!(process.settle(), cpu(50, 60));
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
