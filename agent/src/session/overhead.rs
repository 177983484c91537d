//! What profiling costs the profiled services, and the budget for it, judged every few seconds.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::calls::Stage;
use super::calls_rate::CallsRate;
use super::governor::{Decision, Duty, Governor, Keep, Rung, Spent};
use super::options::Options;
use super::over_budget::{Notice, Notices};
use super::windows::StepProbes;
use tlsprof_attach::registry::Registry;
use tlsprof_common::units::percent;
use tlsprof_discover::host_time::HostTime;
use tlsprof_kernel::cost::{ProgramRuns, RunMeter, TrapCost, probe_seconds, program_seconds};
use tlsprof_kernel::hits::Hits;
use tlsprof_kernel::loaded::Loaded;
use tlsprof_ledger::{Ledger, ServiceAccount};
use tlsprof_outlet::watch::Reduced;
use tlsprof_report::model::AgentCost;

/// Of what is in only while socket calls are seen: CPU seconds, or in a second.
#[derive(Clone, Copy)]
struct InWindows {
    calls: f64,
    switches: f64,
}

/// The governor, and what had been spent by its last judgement.
struct Budget {
    governor: Governor,
    judged: Instant,
    before: Spent,
    notices: Notices,
}

impl Budget {
    fn new(share: f64, keep: Keep) -> Self {
        Self {
            governor: Governor::new(share, keep),
            judged: Instant::now(),
            before: Spent::default(),
            notices: Notices::default(),
        }
    }

    /// Judges what was spent since the last time, with calls and switches as they cost in a second in which
    /// all are seen.
    fn judge(&mut self, sums: Spent, rates: InWindows) -> Decision {
        let length = self.judged.elapsed().as_secs_f64();
        self.judged = Instant::now();
        let before = std::mem::replace(&mut self.before, sums);
        let spent = Spent {
            host: sums.host - before.host,
            targets: sums.targets - before.targets,
            calls: rates.calls * length,
            switches: rates.switches * length,
            probes: sums.probes - before.probes,
            states: sums.states - before.states,
            others: sums.others - before.others,
            openings: sums.openings - before.openings,
        };
        tracing::debug!(?spent, length, "the cost of profiling");
        let cost_ratio = self.governor.share(&spent);
        let decision = self.governor.judge(&spent);
        if let Decision::Change(rung) = decision {
            log_change(rung, cost_ratio);
        }
        if let Some(notice) = self.notices.after(decision, self.judged) {
            log_notice(notice, cost_ratio);
        }
        decision
    }
}

fn log_change(rung: Rung, cost_ratio: f64) {
    let all = "Everything is measured again.".to_owned();
    let text = reduced(rung).map_or(all, |reduced| reduced.text);
    let cost = percent(cost_ratio);
    tracing::info!("profiling cost {cost} of the services' CPU time. {text}");
}

fn log_notice(notice: Notice, cost_ratio: f64) {
    let cost = percent(cost_ratio);
    match notice {
        Notice::Exceeded => tracing::warn!(
            "profiling exceeds its budget: it costs {cost} of the services' CPU time, and nothing \
             more can be turned off"
        ),
        Notice::Within => tracing::info!(
            "profiling is within its budget again: it costs {cost} of the services' CPU time"
        ),
    }
}

/// What is not measured on a rung, in a sentence; None if all is.
fn reduced(rung: Rung) -> Option<Reduced> {
    let text = if rung.calls != Duty::ALWAYS {
        format!(
            "To keep the budget, only connections opened in {} are followed: their handshakes and \
             requests stand for those of the others, which are only counted.",
            in_words(rung.calls)
        )
    } else if !rung.library {
        "To keep the budget, TLS libraries are not probed: handshakes are measured on their \
         sockets, without steps."
            .to_owned()
    } else if rung.steps != Duty::ALWAYS {
        let windows = in_words(rung.steps);
        format!("To keep the budget, steps of handshakes are measured in {windows} only.")
    } else {
        return None;
    };
    let estimates = rung.calls != Duty::ALWAYS;
    Some(Reduced { text, estimates })
}

fn in_words(duty: Duty) -> String {
    format!(
        "{} s of every {} s",
        duty.window.as_secs_f64(),
        duty.period.as_secs_f64()
    )
}

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
    /// The same of what stops clocks, which is in at the same times.
    switches_rate: CallsRate,
    /// The meter was read since the last judgement.
    measured: bool,
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
            switches_rate: CallsRate::default(),
            measured: false,
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
        self.calls_rate.begin(Instant::now(), 0.0);
        self.switches_rate.begin(Instant::now(), 0.0);
        let sums = self.sums(loaded, ledger);
        if let Some(budget) = &mut self.budget {
            budget.judged = Instant::now();
            budget.before = sums;
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
        if let Some(meter) = &mut self.meter {
            self.measured |= meter.turn(loaded);
        }
        Ok(())
    }

    /// The next stage of socket calls begins.
    pub(super) fn go_over(&mut self, stage: Stage, loaded: &Loaded) {
        let (now, spent) = (Instant::now(), self.spent_in_windows(loaded));
        self.calls_rate.go_over(stage, now, spent.calls);
        self.switches_rate.go_over(stage, now, spent.switches);
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
        let budget = self.budget.as_ref()?;
        reduced(budget.governor.rung())
    }

    /// Whether TLS libraries are probed, as far as the budget goes.
    pub(super) fn probes_libraries(&self) -> bool {
        let budget = self.budget.as_ref();
        budget.is_none_or(|budget| budget.governor.rung().library)
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
        if self.budget.is_none() || !std::mem::take(&mut self.measured) {
            return None;
        }
        let sums = self.sums(loaded, ledger);
        let probed = self.probes_libraries();
        let now = Instant::now();
        let rates = InWindows {
            calls: self.calls_rate.read(now, sums.calls),
            switches: self.switches_rate.read(now, sums.switches),
        };
        let Decision::Change(rung) = self.budget.as_mut()?.judge(sums, rates) else {
            return None;
        };
        if self.steps {
            self.step_probes.set_duty(rung.steps);
        }
        if rung.library != probed {
            self.step_probes.set_key_derivation(match rung.library {
                true => self.key_derivation,
                false => Duty::NEVER,
            });
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

    #[allow(clippy::cast_precision_loss, reason = "estimates")]
    fn sums(&self, loaded: &Loaded, ledger: &Ledger) -> Spent {
        let runs = self.runs();
        let in_windows = self.spent_in_windows(loaded);
        Spent {
            host: self.host_seconds(),
            targets: target_cpu(ledger).as_secs_f64(),
            calls: in_windows.calls,
            switches: in_windows.switches,
            probes: self.probe_seconds(loaded, ledger).0,
            states: program_seconds(runs.states),
            others: program_seconds(runs.others),
            openings: ledger
                .services()
                .map(|(_, account)| account.connection_count() as f64)
                .sum(),
        }
    }
}

/// CPU time of the services that hooks and probes are run by: what others use is no measure
/// of what these may cost.
fn target_cpu(ledger: &Ledger) -> Duration {
    let is_target =
        |account: &ServiceAccount| account.probe_hits > 0 || account.connection_count() > 0;
    let accounts = ledger.services().map(|(_, account)| account);
    let targets = accounts.filter(|account| is_target(account));
    targets.map(ServiceAccount::cpu).sum()
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
