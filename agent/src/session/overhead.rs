//! What profiling costs the profiled services, and what is attached for it.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::budget::{Budget, Sums};
use super::calls::Stage;
use super::calls_rate::CallsRate;
use super::governor::{Decision, Duty, InWindows, Keep};
use super::options::Options;
use super::windows::StepProbes;
use tlsprof_attach::registry::Registry;
use tlsprof_discover::host_time::HostTime;
use tlsprof_kernel::cost::{ProgramRuns, RunMeter, TrapCost, probe_seconds, program_seconds};
use tlsprof_kernel::hits::Hits;
use tlsprof_kernel::loaded::Loaded;
use tlsprof_ledger::{Ledger, ServiceAccount};
use tlsprof_outlet::watch::Reduced;
use tlsprof_report::model::AgentCost;

/// What profiling costs, and what is attached for it.
pub(super) struct Overhead {
    step_probes: StepProbes,
    /// Whether there are any.
    steps: bool,
    key_derivation: Duty,
    budget: Option<Budget>,
    /// None before the window of the profile.
    meter: Option<RunMeter>,
    calls_rate: CallsRate,
    host_before: Option<HostTime>,
    trap: TrapCost,
    /// Hits of probes before the window of the profile, and up to its end.
    hits_before: Hits,
    hits_at_end: Option<Hits>,
}

impl Overhead {
    /// `trap`: what a hit of a probe costs on this machine. `calls`: whether socket calls are seen,
    /// without which probes in libraries are the only ones to tell of handshakes.
    pub(super) fn new(options: &Options, trap: TrapCost, calls: bool) -> Self {
        let keep = if calls {
            options.keep
        } else {
            Keep::LibraryProbes
        };
        Self {
            steps: options.steps != Duty::NEVER,
            step_probes: StepProbes::new(options.steps, options.key_derivation),
            key_derivation: options.key_derivation,
            budget: options.budget.map(|share| Budget::new(share, keep)),
            meter: None,
            calls_rate: CallsRate::default(),
            host_before: HostTime::read(),
            trap,
            hits_before: Hits::default(),
            hits_at_end: None,
        }
    }

    /// The window of the profile begins: what attaching has cost is not its. The first judgement
    /// compares what profiling and the services use from now on.
    pub(super) fn begin_window(&mut self, loaded: &Loaded, ledger: &Ledger) {
        self.hits_before = loaded.hits();
        self.meter = Some(RunMeter::new(loaded));
        self.calls_rate.begin(Instant::now(), InWindows::default());
        let sums = self.sums(loaded, ledger);
        if let Some(budget) = &mut self.budget {
            budget.begin(sums, ledger);
        }
    }

    /// The window has ended: what the probes still cost is not its.
    pub(super) fn end_window(&mut self, loaded: &Loaded) {
        if let Some(meter) = &mut self.meter {
            meter.read(loaded);
        }
        self.hits_at_end = Some(loaded.hits());
    }

    fn hits(&self, loaded: &Loaded) -> Hits {
        let now = self.hits_at_end.unwrap_or_else(|| loaded.hits());
        now.since(self.hits_before)
    }

    /// Changes the budget, where there is one.
    pub(super) const fn set_budget(&mut self, share: f64) {
        if let Some(budget) = &mut self.budget {
            budget.set(share);
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
        if let Some(meter) = &mut self.meter {
            meter.turn(loaded);
        }
        Ok(())
    }

    /// The next stage of socket calls begins.
    pub(super) fn go_over(&mut self, stage: Stage, loaded: &Loaded) {
        let (now, spent) = (Instant::now(), self.spent_in_windows(loaded));
        self.calls_rate.go_over(stage, now, spent);
    }

    /// CPU seconds so far of what is in only while socket calls are seen.
    fn spent_in_windows(&self, loaded: &Loaded) -> InWindows {
        let runs = self.meter.as_ref().map(|meter| meter.up_to_now(loaded));
        let runs = runs.unwrap_or_default();
        InWindows {
            calls: program_seconds(runs.calls),
            switches: program_seconds(runs.switches),
        }
    }

    /// Share of the time in which the public-key steps are probed.
    pub(super) fn step_duty_ratio(&self) -> f64 {
        self.step_probes.duty_ratio()
    }

    /// What is not measured now, to keep the budget.
    pub(super) fn reduced(&self) -> Option<Reduced> {
        self.budget.as_ref()?.reduced()
    }

    /// Whether TLS libraries are probed, as far as the budget goes.
    pub(super) fn probes_libraries(&self) -> bool {
        let budget = self.budget.as_ref();
        budget.is_none_or(|budget| budget.rung().library)
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
        let runs = self.runs();
        let hooks = program_seconds(runs.hooks());
        let (probes, profiled_probes) = self.probe_seconds(loaded, ledger);
        AgentCost {
            cpu_seconds: own_cpu_seconds(),
            memory_bytes: own_memory_bytes(),
            bpf_run_seconds: runs.all().seconds,
            bpf_runs: runs.all().count as u64,
            probe_hits: self.hits(loaded).probes(),
            target_seconds: probes + hooks,
            profiled_seconds: profiled_probes + hooks,
        }
    }

    fn runs(&self) -> ProgramRuns {
        let meter = self.meter.as_ref();
        meter.map_or_else(ProgramRuns::default, |meter| *meter.total())
    }

    /// Estimated CPU seconds that probes in processes have cost: all of them, and
    /// the profiled services by their share of the hits.
    #[allow(clippy::cast_precision_loss, reason = "estimates")]
    fn probe_seconds(&self, loaded: &Loaded, ledger: &Ledger) -> (f64, f64) {
        let hits = self.hits(loaded);
        let all = probe_seconds(&hits, self.trap, self.runs().probes);
        let share = ledger.probe_hits() as f64 / hits.probes().max(1) as f64;
        (all, all * share.min(1.0))
    }

    /// Changes what is measured where it costs more than the budget, or much less. Returns when
    /// socket calls are to be seen, if that changes.
    pub(super) fn keep_budget(
        &mut self,
        loaded: &mut Loaded,
        registry: &mut Registry,
        ledger: &Ledger,
    ) -> Option<Duty> {
        if !self.budget.as_ref().is_some_and(Budget::is_due) {
            return None;
        }
        if let Some(meter) = &mut self.meter {
            meter.read(loaded);
        }
        let sums = self.sums(loaded, ledger);
        let seen = self.spent_in_windows(loaded);
        let seen = self.calls_rate.read(Instant::now(), seen);
        let probed = self.probes_libraries();
        let budget = self.budget.as_mut()?;
        let Decision::Change(rung) = budget.judge(sums, seen, self.key_derivation, ledger) else {
            return None;
        };
        if self.steps {
            self.step_probes.set_duty(rung.steps);
        }
        let key_derivation = rung.key_derivation(self.key_derivation);
        self.step_probes.set_key_derivation(key_derivation);
        if rung.library != probed {
            registry.set_probed(loaded, rung.library);
        }
        Some(rung.calls)
    }

    /// CPU seconds of the host without our own, since the profile began.
    fn host_seconds(&self) -> f64 {
        let used = HostTime::read().zip(self.host_before);
        let used = used.map_or(Duration::ZERO, |(now, before)| now.used_since(before));
        used.as_secs_f64() - own_cpu_seconds()
    }

    fn sums(&self, loaded: &Loaded, ledger: &Ledger) -> Sums {
        let runs = self.runs();
        let accounts = || ledger.services().map(|(_, account)| account);
        let booked: u64 = accounts().map(ServiceAccount::handshake_count).sum();
        let estimated = accounts().map(ServiceAccount::estimated_handshakes);
        Sums {
            host: self.host_seconds(),
            probes: self.probe_seconds(loaded, ledger).0,
            states: program_seconds(runs.states),
            others: program_seconds(runs.others),
            attached: self.step_probes.attached(),
            handshakes: booked.saturating_sub(estimated.sum()),
            booked,
        }
    }
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
