//! CPU time of services since the profile began.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::process::CpuTime;
use crate::service::ServiceName;
use tlsprof_common::LifetimeCpu;

/// Half of the services with an account of their own. Services whose CPU time is taken need none, so that these
/// are the ones that nobody asks for.
const MAX_RECENT: usize = 1024;

/// What the services beyond the bound used is under this name.
const OTHER: &str = "other";

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

/// What processes that have ended, or have gone over to another service, used, until it is taken.
///
/// Where there are too many services, one that nothing was added to for long goes first: evidence that makes it
/// worth booking may come a little after the end of a process.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    recent: HashMap<ServiceName, CpuTime>,
    /// Nothing was added to them since `recent` was full the last time.
    older: HashMap<ServiceName, CpuTime>,
}

impl Accounts {
    /// Adds to the account of a service.
    pub(super) fn add(&mut self, service: &ServiceName, used: CpuTime) {
        if used == CpuTime::default() {
            return;
        }
        if let Some(account) = self.recent.get_mut(service) {
            *account += used;
            return;
        }
        let before = self.older.remove(service).unwrap_or_default();
        if self.recent.len() >= MAX_RECENT {
            self.make_room();
        }
        let account = self.recent.entry(service.clone()).or_default();
        *account += before + used;
    }

    fn make_room(&mut self) {
        let recent = std::mem::take(&mut self.recent);
        let mut beyond = CpuTime::default();
        for used in std::mem::replace(&mut self.older, recent).into_values() {
            beyond += used;
        }
        if beyond != CpuTime::default() {
            self.recent.insert(ServiceName::new(OTHER), beyond);
        }
    }

    /// Takes the accounts of those services for which `wanted` holds.
    pub(super) fn take(&mut self, wanted: impl Fn(&str) -> bool) -> BTreeMap<ServiceName, CpuTime> {
        let mut taken = BTreeMap::new();
        for accounts in [&mut self.recent, &mut self.older] {
            for (service, used) in accounts.extract_if(|service, _| wanted(service.as_str())) {
                *taken.entry(service).or_default() += used;
            }
        }
        taken
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.recent.clear();
        self.older.clear();
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

    fn service(number: usize) -> ServiceName {
        ServiceName::new(&format!("service{number}"))
    }

    #[test]
    fn accounts_are_bounded_and_nothing_is_lost() {
        const NAMES: usize = 10_000;
        let mut accounts = Accounts::default();
        for number in 0..NAMES {
            accounts.add(&service(number), cpu(1, 1));
            assert!(accounts.recent.len() + accounts.older.len() <= 2 * MAX_RECENT);
        }
        let taken = accounts.take(|_| true);
        assert!(taken.contains_key(&service(NAMES - MAX_RECENT)));
        let beyond = taken.get(&ServiceName::new(OTHER)).copied();
        assert!(beyond.is_some_and(|beyond| beyond.user > Duration::from_secs(7)));
        let sum = taken.into_values().reduce(|sum, one| sum + one);
        assert_eq!(sum, Some(cpu(10_000, 10_000)));
        assert_eq!(accounts.take(|_| true), BTreeMap::new());
    }

    #[test]
    fn an_account_that_grows_stays() {
        let mut accounts = Accounts::default();
        let growing = ServiceName::new("growing");
        for number in 0..10 * MAX_RECENT {
            accounts.add(&service(number), cpu(1, 0));
            if number % (MAX_RECENT / 2) == 0 {
                accounts.add(&growing, cpu(0, 1));
            }
        }
        let taken = accounts.take(|name| name == "growing");
        assert_eq!(taken, BTreeMap::from([(growing, cpu(0, 20))]));
    }
}
