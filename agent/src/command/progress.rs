//! Snapshots of a session for the live display.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::evidence::Outcome;
use crate::ledger::ServiceAccount;
use crate::outlet::live::{LiveService, Snapshot};
use crate::outlet::report::text::losses::is_serious;
use crate::session::Session;

const PERIOD: Duration = Duration::from_secs(1);

/// Makes a snapshot a second.
pub(super) struct Progress {
    planned: Option<Duration>,
    last: Instant,
    counts: BTreeMap<String, u64>,
}

impl Progress {
    pub(super) fn new(planned: Option<Duration>) -> Self {
        Self {
            planned,
            last: Instant::now(),
            counts: BTreeMap::new(),
        }
    }

    /// None while the last snapshot is less than a second old.
    pub(super) fn snapshot(&mut self, session: &Session) -> Option<Snapshot> {
        let interval = self.last.elapsed();
        if interval < PERIOD {
            return None;
        }
        self.last = Instant::now();
        let ledger = session.ledger();
        let mut services: Vec<LiveService> = ledger
            .services()
            .map(|(name, account)| self.service(name, account, interval))
            .collect();
        services.retain(|service| service.handshakes > 0);
        services.sort_by_key(|service| std::cmp::Reverse(service.handshake_cpu));
        let losses = session.losses();
        let serious = losses.iter().filter(|loss| is_serious(loss));
        Some(Snapshot {
            elapsed: session.elapsed(),
            planned: self.planned,
            services,
            lost: serious.map(|loss| loss.count).sum(),
        })
    }

    fn service(&mut self, name: &str, account: &ServiceAccount, interval: Duration) -> LiveService {
        let handshakes = account.handshake_count();
        let before = self
            .counts
            .insert(name.to_owned(), handshakes)
            .unwrap_or_default();
        LiveService {
            name: name.to_owned(),
            cpu: account.cpu_user + account.cpu_system,
            handshake_cpu: account.handshake_cpu(),
            handshakes,
            incomplete: handshakes - account.count_of(Outcome::Completed),
            recent: handshakes - before,
            interval,
        }
    }
}
