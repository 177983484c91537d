//! What profiling costs the profiled services, and the budget for it, judged every few seconds.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::governor::{Decision, Governor};
use super::options::Options;
use super::windows::StepProbes;
use tlsprof_attach::registry::Registry;
use tlsprof_common::units::percent;
use tlsprof_kernel::cost::{RunMeter, TrapCost, hook_seconds, probe_seconds};
use tlsprof_kernel::loaded::Loaded;
use tlsprof_ledger::Ledger;
use tlsprof_report::model::AgentCost;

const PERIOD: Duration = Duration::from_secs(5);

/// The governor, and the sums at its last judgement.
struct Budget {
    governor: Governor,
    judged: Instant,
    probe_seconds: f64,
    cpu_seconds: f64,
}

impl Budget {
    fn new(share: f64) -> Self {
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
            Decision::Change(duty) => tracing::info!(
                "step probes now run {} of the time: probes cost {} of the services' CPU time",
                percent(duty.ratio()),
                percent(cost_ratio)
            ),
            Decision::OverBudget => tracing::warn!(
                "probes exceed the budget: they cost {} of the services' CPU time, although only those \
                 that count handshakes are left",
                percent(cost_ratio)
            ),
        }
        decision
    }
}

/// What profiling costs, and what is attached for it.
pub(super) struct Overhead {
    step_probes: StepProbes,
    budget: Option<Budget>,
    meter: RunMeter,
    trap: TrapCost,
}

impl Overhead {
    /// `trap`: what a hit of a probe costs on this machine.
    pub(super) fn new(options: &Options, trap: TrapCost) -> Self {
        Self {
            step_probes: StepProbes::new(options.steps, options.key_derivation),
            budget: options.budget.map(Budget::new),
            meter: RunMeter::default(),
            trap,
        }
    }

    /// Changes the budget, where there is one.
    pub(super) const fn set_budget(&mut self, share: f64) {
        if let Some(budget) = &mut self.budget {
            budget.governor.set_budget(share);
        }
    }

    /// Attaches the step probes for the first time.
    ///
    /// # Errors
    ///
    /// When the kernel side breaks down.
    pub(super) fn begin(&mut self, loaded: &mut Loaded, registry: &mut Registry) -> Result<()> {
        self.step_probes.begin(loaded, registry)
    }

    /// Attaches or releases the step probes where it is time for it.
    ///
    /// # Errors
    ///
    /// As for [`begin`](Self::begin).
    pub(super) fn turn(&mut self, loaded: &mut Loaded, registry: &mut Registry) -> Result<()> {
        self.step_probes.turn(loaded, registry)?;
        self.measure(loaded);
        Ok(())
    }

    /// Takes note of what programs have cost since the last time.
    pub(super) fn measure(&mut self, loaded: &Loaded) {
        self.meter.tick(loaded);
    }

    /// Share of the time in which the public-key steps are probed.
    pub(super) fn step_duty_ratio(&self) -> f64 {
        self.step_probes.duty_ratio()
    }

    /// What the profile has cost so far. Of the programs on socket calls and on
    /// the scheduler nobody knows the profiled services' part: it is at most all.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "estimates, not negative"
    )]
    pub(super) fn cost(&self, loaded: &Loaded, ledger: &Ledger) -> AgentCost {
        let runs = self.meter.total();
        let hooks = hook_seconds(loaded.connections.call_cost(), runs.hooks);
        let (probes, profiled_probes) = self.probe_seconds(loaded, ledger);
        AgentCost {
            cpu_seconds: own_cpu_seconds(),
            memory_bytes: own_memory_bytes(),
            bpf_run_seconds: runs.probes.seconds + runs.hooks.seconds,
            bpf_runs: (runs.probes.count + runs.hooks.count) as u64,
            probe_hits: loaded.hits().probes(),
            target_seconds: probes + hooks,
            profiled_seconds: profiled_probes + hooks,
        }
    }

    /// Estimated CPU seconds that probes in processes have cost: all of them, and
    /// the profiled services by their share of the hits.
    #[allow(clippy::cast_precision_loss, reason = "estimates")]
    fn probe_seconds(&self, loaded: &Loaded, ledger: &Ledger) -> (f64, f64) {
        let hits = loaded.hits();
        let all = probe_seconds(&hits, self.trap, self.meter.total().probes);
        let share = ledger.probe_hits() as f64 / hits.probes().max(1) as f64;
        (all, all * share.min(1.0))
    }

    /// Changes the duty of the step probes where their cost is over budget, or far
    /// below it.
    pub(super) fn keep_budget(&mut self, loaded: &Loaded, ledger: &Ledger) {
        let due = |budget: &Budget| budget.judged.elapsed() >= PERIOD;
        if !self.budget.as_ref().is_some_and(due) {
            return;
        }
        // What the budget can change: not the programs on socket calls.
        let (_, probe_seconds) = self.probe_seconds(loaded, ledger);
        let cpu_seconds = probed_cpu(ledger).as_secs_f64();
        let decision = self
            .budget
            .as_mut()
            .map(|budget| budget.judge(probe_seconds, cpu_seconds));
        if let Some(Decision::Change(duty)) = decision {
            self.step_probes.set_duty(duty);
        }
    }
}

/// CPU time of the services in which probes were hit: what the others use is
/// no measure of what probes may cost.
fn probed_cpu(ledger: &Ledger) -> Duration {
    let accounts = ledger.services().map(|(_, account)| account);
    let probed = accounts.filter(|account| account.probe_hits > 0);
    probed
        .map(|account| account.cpu_user + account.cpu_system)
        .sum()
}

/// CPU time of this process, user and system.
fn own_cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    #[allow(clippy::cast_precision_loss, reason = "seconds of CPU time are few")]
    let seconds = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
    seconds
}

/// Resident memory of this process; 0 where /proc does not show it.
fn own_memory_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
    pages.unwrap_or_default() * rustix::param::page_size() as u64
}
