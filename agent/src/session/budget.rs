//! The budget of a session: what probes cost the profiled services, judged every
//! few seconds.

use std::time::{Duration, Instant};

use super::Session;
use super::governor::{Decision, Governor};

const PERIOD: Duration = Duration::from_secs(5);

/// The governor, and the sums at its last judgement.
pub(super) struct Budget {
    governor: Governor,
    judged: Instant,
    probe_seconds: f64,
    cpu_seconds: f64,
}

impl Budget {
    pub(super) fn new(share: f64) -> Self {
        Self {
            governor: Governor::new(share),
            judged: Instant::now(),
            probe_seconds: 0.0,
            cpu_seconds: 0.0,
        }
    }

    /// Judges what was spent since the last time.
    fn judge(&mut self, probe_seconds: f64, cpu_seconds: f64) -> Decision {
        let probes = probe_seconds - self.probe_seconds;
        let cpu = cpu_seconds - self.cpu_seconds;
        self.judged = Instant::now();
        (self.probe_seconds, self.cpu_seconds) = (probe_seconds, cpu_seconds);
        let decision = self.governor.judge(probes, cpu);
        let cost_ratio = probes / cpu;
        match decision {
            Decision::Keep => {}
            Decision::Change(duty) => tracing::warn!(
                cost_ratio,
                duty_ratio = duty.ratio(),
                "the step probes are attached for another share of the time, to keep within the budget"
            ),
            Decision::OverBudget => tracing::warn!(
                cost_ratio,
                "probes cost more than the budget, though only those that count handshakes are left"
            ),
        }
        decision
    }
}

impl Session {
    /// CPU time of the services in which probes were hit: what the others use is
    /// no measure of what probes may cost.
    fn probed_cpu(&self) -> Duration {
        let ledger = self.ledger();
        let accounts = ledger.services().map(|(_, account)| account);
        let probed = accounts.filter(|account| account.probe_hits > 0);
        probed
            .map(|account| account.cpu_user + account.cpu_system)
            .sum()
    }

    /// Changes the duty of the step probes where their cost is over budget, or far
    /// below it.
    pub(super) fn keep_budget(&mut self) {
        let due = |budget: &Budget| budget.judged.elapsed() >= PERIOD;
        if !self.budget.as_ref().is_some_and(due) {
            return;
        }
        // What the budget can change: not the programs on socket calls.
        let (_, probe_seconds) = self.probe_seconds();
        let cpu_seconds = self.probed_cpu().as_secs_f64();
        let decision = self
            .budget
            .as_mut()
            .map(|budget| budget.judge(probe_seconds, cpu_seconds));
        if let Some(Decision::Change(duty)) = decision {
            self.step_probes.set_duty(duty);
        }
    }
}
