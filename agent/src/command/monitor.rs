//! What `agent` and `top` do for as long as they run: profile, renew what is shown, judge services.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use jiff::Timestamp;

use super::setup::TURN;
use crate::config::Config;
use crate::session::{Session, model_of};
use tlsprof_advise::Thresholds;
use tlsprof_discover::host::{Host, aes_in_hardware};
use tlsprof_evidence::Evidence;
use tlsprof_outlet::watch::{About, SharedWatch, Watch};

/// A session, and what is shown of it.
pub(super) struct Monitor {
    pub(crate) session: Session,
    watch: SharedWatch,
    thresholds: Thresholds,
    /// How often services are judged.
    judge_interval: Duration,
    judged: Option<Instant>,
    /// Up to when CPU time was booked that is shown.
    shown: Duration,
    aes_in_hardware: bool,
}

impl Monitor {
    pub fn new(
        session: Session,
        watch: SharedWatch,
        config: &Config,
        judge_interval: Duration,
    ) -> Self {
        Self {
            session,
            watch,
            thresholds: config.findings,
            judge_interval,
            judged: None,
            shown: Duration::ZERO,
            aes_in_hardware: aes_in_hardware(),
        }
    }

    /// Takes over what can change while it runs: thresholds of findings, and the budget.
    pub(crate) fn reconfigure(&mut self, config: &Config) {
        self.thresholds = config.findings;
        self.judged = None;
        self.session.set_budget(config.agent.budget);
    }

    /// Profiles for a moment. Whether there are new figures, about once a second.
    ///
    /// # Errors
    /// When the session cannot go on.
    pub(crate) fn turn(&mut self, observe: impl FnMut(&str, &Evidence)) -> Result<bool> {
        self.session.turn(TURN, observe)?;
        let accounted = self.session.accounted_at();
        if accounted <= self.shown {
            return Ok(false);
        }
        self.shown = accounted;
        self.show();
        let due = |judged: Instant| judged.elapsed() >= self.judge_interval;
        if self.judged.is_none_or(due) {
            self.judged = Some(Instant::now());
            self.judge();
        }
        Ok(true)
    }

    /// Renews the figures.
    pub(crate) fn show(&self) {
        let session = &self.session;
        let (cost, losses) = (session.cost(), session.losses());
        let mut watch = locked(&self.watch);
        watch.read(self.shown, cost, losses);
        watch.set_reduced(session.reduced());
    }

    /// Renews the findings, on the last minutes of services.
    fn judge(&self) {
        let facts = self.session.recent_facts();
        let at = self.session.elapsed();
        let mut watch = locked(&self.watch);
        watch.judge(at, facts, self.thresholds, self.aes_in_hardware);
    }
}

pub(super) fn locked(watch: &SharedWatch) -> MutexGuard<'_, Watch> {
    // A panic elsewhere leaves it usable: its sums are each written at once.
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn about() -> Result<About> {
    Ok(About {
        run: format!("{:016x}", RandomState::new().hash_one(std::process::id())),
        tlsprof_version: env!("CARGO_PKG_VERSION").to_owned(),
        host: model_of(&Host::read()?),
        started_at: format!("{:.0}", Timestamp::now()),
    })
}
