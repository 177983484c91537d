//! Accounts of the last minutes, for what must go away once it is remedied.
//!
//! Sums of a [`Ledger`] only grow: what came in the last minutes is what they are now, less
//! what they were. So its state is kept each [`SPAN`], and what is judged has run for one to
//! two of these, or since the start. It is a ledger like that of a report over this time, and
//! means the same.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tlsprof_common::Role;

use super::since::Since as _;
use super::{Ledger, ServiceAccount};

/// How far apart states are kept.
pub(crate) const SPAN: Duration = Duration::from_secs(300);

/// The whole ledger at a time since its beginning.
#[derive(Clone, Debug, Default)]
struct State {
    at: Duration,
    ledger: Ledger,
}

/// What the whole ledger was like when the last minutes began, and in the middle of them.
/// Twice its memory at most.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    earlier: State,
    later: State,
}

impl Recent {
    /// Follows the whole ledger, at a time since its beginning. To be called more often than
    /// each [`SPAN`].
    pub fn follow(&mut self, whole: &Ledger, at: Duration) {
        if at >= self.later.at + SPAN {
            let mut ledger = whole.clone();
            let queues = ledger.services.values_mut();
            queues.for_each(|account| account.accept_queue.forget_peak());
            self.earlier = std::mem::replace(&mut self.later, State { at, ledger });
        }
        for state in [&mut self.earlier, &mut self.later] {
            for (name, before) in &mut state.ledger.services {
                if let Some(account) = whole.service(name) {
                    before.accept_queue.follow_peak(&account.accept_queue);
                }
            }
        }
    }

    /// How long the last minutes are at that time.
    pub const fn length(&self, at: Duration) -> Duration {
        at.saturating_sub(self.earlier.at)
    }

    /// The accounts of all services of which there was evidence.
    pub fn accounts(&self, whole: &Ledger) -> Ledger {
        whole.since(&self.earlier.ledger)
    }

    /// The account of one service; None without evidence.
    pub fn account(&self, whole: &Ledger, service: &str) -> Option<ServiceAccount> {
        let account = whole.service(service)?;
        let recent = match self.earlier.ledger.service(service) {
            Some(before) => account.since(before),
            None => account.clone(),
        };
        (!recent.is_zero()).then_some(recent)
    }

    /// The roles in which a service had handshakes.
    pub fn tls_roles(&self, whole: &Ledger, service: &str) -> BTreeSet<Role> {
        let count = |ledger: &Ledger| {
            let mut counts: BTreeMap<Role, u64> = BTreeMap::new();
            let account = ledger.service(service);
            for (key, sum) in account.iter().flat_map(|one| &one.handshakes) {
                *counts.entry(key.role).or_default() += sum.count;
            }
            counts
        };
        let new = count(whole).since(&count(&self.earlier.ledger));
        new.into_keys().collect()
    }
}

#[cfg(test)]
mod tests;
