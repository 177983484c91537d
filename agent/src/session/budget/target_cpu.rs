//! CPU time of those that hooks and probes are run by: what others use is no measure of what these may cost.

use std::collections::BTreeMap;
use std::time::Duration;

use tlsprof_ledger::{ConnectionAccount, ServiceAccount};

/// A service without connections for so many intervals is no target any more. They are more than the 16 from one window
/// of socket calls to the next: outside of windows a connection is seen only when it ends.
const QUIET: u32 = 20;

/// What a service had used, and what had happened on its connections.
#[derive(Debug)]
struct Before {
    cpu: Duration,
    events: u64,
    /// Intervals since the last of these.
    quiet: u32,
}

/// The same of all.
#[derive(Debug, Default)]
pub(super) struct TargetCpu(BTreeMap<String, Before>);

impl TargetCpu {
    /// CPU time since the last time of the services that have connections, or had some lately. Each has used
    /// `most` at most: one that is new may have used what it has in all at any time.
    pub(super) fn since_last<'a>(
        &mut self,
        services: impl Iterator<Item = (&'a str, &'a ServiceAccount)>,
        most: Duration,
    ) -> Duration {
        let used = services.map(|(name, account)| self.used(name, account).min(most));
        used.sum()
    }

    fn used(&mut self, name: &str, account: &ServiceAccount) -> Duration {
        let (cpu, events) = (account.cpu(), events(account));
        let Some(before) = self.0.get_mut(name) else {
            let (quiet, used) = match events > 0 {
                true => (0, cpu),
                false => (QUIET, Duration::ZERO),
            };
            let before = Before { cpu, events, quiet };
            self.0.insert(name.to_owned(), before);
            return used;
        };
        before.quiet = match events > before.events || is_connected(account) {
            true => 0,
            false => before.quiet.saturating_add(1),
        };
        before.events = events;
        let used = cpu.saturating_sub(std::mem::replace(&mut before.cpu, cpu));
        match before.quiet < QUIET {
            true => used,
            false => Duration::ZERO,
        }
    }
}

/// Probes that were hit, and connections that opened or ended.
fn events(account: &ServiceAccount) -> u64 {
    let ends = account
        .connections
        .values()
        .map(ConnectionAccount::closed_count);
    account.probe_hits + account.connection_count() + ends.sum::<u64>()
}

/// Whether it has open connections, as far as is known. A service with one from before the profile may have more of
/// these: they are seen only when they end.
fn is_connected(account: &ServiceAccount) -> bool {
    let mut roles = account.connections.values();
    account.connections_from_before > 0 || roles.any(|one| one.opened > one.closed_count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlsprof_common::{Closer, Role};

    const MOST: Duration = Duration::from_secs(20);

    /// With so many connections, and seconds of CPU time.
    fn service(opened: u64, cpu: u64) -> ServiceAccount {
        let mut account = ServiceAccount::default();
        account.connections.entry(Role::Server).or_default().opened = opened;
        account.cpu_user = Duration::from_secs(cpu);
        account
    }

    /// With a connection that has ended.
    fn after_its_end(cpu: u64) -> ServiceAccount {
        let mut account = service(1, cpu);
        let connections = account.connections.entry(Role::Server).or_default();
        connections.closed.entry(Closer::Local).or_default().count = 1;
        account
    }

    /// Seconds, where there is no other service.
    fn used_by(targets: &mut TargetCpu, account: &ServiceAccount) -> u64 {
        let services = [("one", account)];
        targets.since_last(services.into_iter(), MOST).as_secs()
    }

    #[test]
    fn only_those_with_connections_count_and_only_for_what_they_use_then() {
        let mut targets = TargetCpu::default();
        let mut used = |served: ServiceAccount, other: ServiceAccount| {
            let services = [("served", &served), ("batch", &other)];
            targets.since_last(services.into_iter(), MOST).as_secs()
        };
        assert_eq!(used(service(1, 2), service(0, 500)), 2);
        assert_eq!(used(service(2, 5), service(0, 600)), 3);
        // The first connection of one that has worked for long.
        assert_eq!(used(service(3, 6), service(1, 610)), 1 + 10);
    }

    #[test]
    fn one_that_is_new_has_used_no_more_than_the_host() {
        let mut targets = TargetCpu::default();
        let mut used = |account| used_by(&mut targets, &account);
        assert_eq!(used(service(1, 3600)), 20);
        assert_eq!(used(service(1, 3601)), 1);
    }

    #[test]
    fn one_whose_connections_have_ended_is_a_target_for_a_while() {
        let mut targets = TargetCpu::default();
        let mut used = |account| used_by(&mut targets, &account);
        assert_eq!(used(after_its_end(2)), 2);
        for interval in 1..30 {
            let expected = u64::from(interval < u64::from(QUIET));
            assert_eq!(used(after_its_end(2 + interval)), expected, "{interval}");
        }
        // An open one is all the time.
        for interval in 1..30 {
            assert_eq!(
                used(service(2, 40 + interval)),
                if interval == 1 { 10 } else { 1 }
            );
        }
    }

    #[test]
    fn connections_from_before_the_profile_may_be_more_than_have_ended() {
        let mut targets = TargetCpu::default();
        let mut used = |cpu| {
            let mut account = service(0, cpu);
            account.connections_from_before = 1;
            used_by(&mut targets, &account)
        };
        used(1);
        assert!((2..60).all(|cpu| used(cpu) == 1));
    }
}
